//! TLS, SASL, OAuth and delegation tokens.
//! One row per setting; the columns are explained in `row.rs`.

use crate::config::row::{Bounds::*, rows};

rows! { SECURITY_ROWS;
    /// After how long a SASL client must log in again; 0 means never.
    CONNECTIONS_MAX_REAUTH_MS "connections.max.reauth.ms" Long = 0, Any, Medium ReadOnly Later;

    /// The largest SASL message accepted before a client is logged in.
    SASL_SERVER_MAX_RECEIVE_SIZE "sasl.server.max.receive.size" Int = 524_288, Any, Medium ReadOnly
        Later;

    /// Java security providers; Gracchus loads no Java classes.
    SECURITY_PROVIDERS "security.providers" OptText = None, Any, Low ReadOnly Never;

    /// Java class that names a client's principal; Gracchus has the default rule only.
    PRINCIPAL_BUILDER_CLASS "principal.builder.class" Class =
        "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder", Any, Medium
        PerBroker Never;

    /// Whether clients must, may or need not show a certificate.
    SSL_CLIENT_AUTH "ssl.client.auth" Text = "none", OneOf(&["required", "requested", "none"]),
        Medium PerBroker Later;

    /// Rules that turn a certificate's subject into a principal name.
    SSL_PRINCIPAL_MAPPING_RULES "ssl.principal.mapping.rules" Text = "DEFAULT", Any, Low ReadOnly
        Later;

    /// Whether a new keystore may carry another subject than the one before.
    SSL_ALLOW_DN_CHANGES "ssl.allow.dn.changes" Bool = false, Any, Low ReadOnly Later;

    /// Whether a new keystore may carry other alternative names than the one before.
    SSL_ALLOW_SAN_CHANGES "ssl.allow.san.changes" Bool = false, Any, Low ReadOnly Later;

    /// The Java name of the TLS family; `ssl.enabled.protocols` decides here.
    SSL_PROTOCOL "ssl.protocol" Text = "TLSv1.3", Any, Medium PerBroker Never;

    /// Java TLS provider; Gracchus has one built in.
    SSL_PROVIDER "ssl.provider" OptText = None, Any, Medium PerBroker Never;

    /// The TLS versions offered.
    SSL_ENABLED_PROTOCOLS "ssl.enabled.protocols" List = "TLSv1.2,TLSv1.3", List, Medium PerBroker
        Later;

    /// Format of the keystore: PEM, or PKCS12 and JKS files.
    SSL_KEYSTORE_TYPE "ssl.keystore.type" Text = "JKS", Any, Medium PerBroker Later;

    /// File that holds this broker's certificate and key.
    SSL_KEYSTORE_LOCATION "ssl.keystore.location" OptText = None, Any, Medium PerBroker Later;

    /// Password of the keystore file.
    SSL_KEYSTORE_PASSWORD "ssl.keystore.password" Secret = None, Any, Medium PerBroker Later;

    /// Password of the private key.
    SSL_KEY_PASSWORD "ssl.key.password" Secret = None, Any, Medium PerBroker Later;

    /// The private key itself in PEM, instead of a file.
    SSL_KEYSTORE_KEY "ssl.keystore.key" Secret = None, Any, Medium PerBroker Later;

    /// The certificate chain itself in PEM, instead of a file.
    SSL_KEYSTORE_CERTIFICATE_CHAIN "ssl.keystore.certificate.chain" Secret = None, Any, Medium
        PerBroker Later;

    /// Format of the truststore: PEM, or PKCS12 and JKS files.
    SSL_TRUSTSTORE_TYPE "ssl.truststore.type" Text = "JKS", Any, Medium PerBroker Later;

    /// File that holds the certificates to trust.
    SSL_TRUSTSTORE_LOCATION "ssl.truststore.location" OptText = None, Any, Medium PerBroker Later;

    /// Password of the truststore file.
    SSL_TRUSTSTORE_PASSWORD "ssl.truststore.password" Secret = None, Any, Medium PerBroker Later;

    /// The certificates to trust themselves in PEM, instead of a file.
    SSL_TRUSTSTORE_CERTIFICATES "ssl.truststore.certificates" Secret = None, Any, Medium PerBroker
        Later;

    /// Java name of a key manager; Gracchus has one built in.
    SSL_KEYMANAGER_ALGORITHM "ssl.keymanager.algorithm" Text = "SunX509", Any, Medium PerBroker
        Never;

    /// Java name of a trust manager; Gracchus has one built in.
    SSL_TRUSTMANAGER_ALGORITHM "ssl.trustmanager.algorithm" Text = "PKIX", Any, Medium PerBroker
        Never;

    /// Whether the name in a peer's certificate must match its host; empty switches that off.
    SSL_ENDPOINT_IDENTIFICATION_ALGORITHM "ssl.endpoint.identification.algorithm" Text = "https",
        Any, Low PerBroker Later;

    /// Java name of a random generator; Gracchus uses the system's.
    SSL_SECURE_RANDOM_IMPLEMENTATION "ssl.secure.random.implementation" OptText = None, Any, Low
        PerBroker Never;

    /// The cipher suites offered; empty means the built-in choice.
    SSL_CIPHER_SUITES "ssl.cipher.suites" List = "", List, Medium PerBroker Later;

    /// Java class that makes TLS engines; Gracchus loads no Java classes.
    SSL_ENGINE_FACTORY_CLASS "ssl.engine.factory.class" OptClass = None, Any, Low PerBroker Never;

    /// The SASL mechanism used between brokers.
    SASL_MECHANISM_INTER_BROKER_PROTOCOL "sasl.mechanism.inter.broker.protocol" Text = "GSSAPI",
        Any, Medium PerBroker Later;

    /// The SASL mechanisms offered to clients.
    SASL_ENABLED_MECHANISMS "sasl.enabled.mechanisms" List = "GSSAPI", List, Medium PerBroker
        Later;

    /// Java class that checks credentials; Gracchus loads no Java classes.
    SASL_SERVER_CALLBACK_HANDLER_CLASS "sasl.server.callback.handler.class" OptClass = None, Any,
        Medium ReadOnly Never;

    /// Rules that shorten a Kerberos principal to a user name.
    SASL_KERBEROS_PRINCIPAL_TO_LOCAL_RULES "sasl.kerberos.principal.to.local.rules" List =
        "DEFAULT", List, Medium PerBroker Later;

    /// Login settings of a SASL mechanism in the notation of Java's JAAS.
    SASL_JAAS_CONFIG "sasl.jaas.config" Secret = None, Any, Medium PerBroker Later;

    /// Java class that supplies credentials; Gracchus loads no Java classes.
    SASL_CLIENT_CALLBACK_HANDLER_CLASS "sasl.client.callback.handler.class" OptClass = None, Any,
        Medium ReadOnly Never;

    /// Java class that logs in; Gracchus loads no Java classes.
    SASL_LOGIN_CLASS "sasl.login.class" OptClass = None, Any, Medium ReadOnly Never;

    /// Java class that supplies login data; Gracchus loads no Java classes.
    SASL_LOGIN_CALLBACK_HANDLER_CLASS "sasl.login.callback.handler.class" OptClass = None, Any,
        Medium ReadOnly Never;

    /// The Kerberos service name of the brokers.
    SASL_KERBEROS_SERVICE_NAME "sasl.kerberos.service.name" OptText = None, Any, Medium PerBroker
        Later;

    /// Path of the kinit program, which Gracchus does not call.
    SASL_KERBEROS_KINIT_CMD "sasl.kerberos.kinit.cmd" Text = "/usr/bin/kinit", Any, Medium
        PerBroker Never;

    /// When in its life a Kerberos ticket is renewed; Gracchus renews none.
    SASL_KERBEROS_TICKET_RENEW_WINDOW_FACTOR "sasl.kerberos.ticket.renew.window.factor" Double =
        0.8, Any, Medium PerBroker Never;

    /// Random share of that moment; Gracchus renews no tickets.
    SASL_KERBEROS_TICKET_RENEW_JITTER "sasl.kerberos.ticket.renew.jitter" Double = 0.05, Any,
        Medium PerBroker Never;

    /// Least time between two Kerberos logins; Gracchus renews no tickets.
    SASL_KERBEROS_MIN_TIME_BEFORE_RELOGIN "sasl.kerberos.min.time.before.relogin" Long = 60_000,
        Any, Medium PerBroker Never;

    /// When in its life a login token is renewed.
    SASL_LOGIN_REFRESH_WINDOW_FACTOR "sasl.login.refresh.window.factor" Double = 0.8, Any, Medium
        PerBroker Later;

    /// Random share of that moment.
    SASL_LOGIN_REFRESH_WINDOW_JITTER "sasl.login.refresh.window.jitter" Double = 0.05, Any, Medium
        PerBroker Later;

    /// Least time between two renewals of a login token.
    SASL_LOGIN_REFRESH_MIN_PERIOD_SECONDS "sasl.login.refresh.min.period.seconds" Short = 60, Any,
        Medium PerBroker Later;

    /// How long before its end a login token is renewed at the latest.
    SASL_LOGIN_REFRESH_BUFFER_SECONDS "sasl.login.refresh.buffer.seconds" Short = 300, Any, Medium
        PerBroker Later;

    /// How long a connection to a token issuer may take to open.
    SASL_LOGIN_CONNECT_TIMEOUT_MS "sasl.login.connect.timeout.ms" OptInt = None, Any, Low ReadOnly
        Later;

    /// How long a token issuer may take to answer.
    SASL_LOGIN_READ_TIMEOUT_MS "sasl.login.read.timeout.ms" OptInt = None, Any, Low ReadOnly Later;

    /// The longest pause between attempts to reach a token issuer.
    SASL_LOGIN_RETRY_BACKOFF_MAX_MS "sasl.login.retry.backoff.max.ms" Long = 10_000, Any, Low
        ReadOnly Later;

    /// The first pause between attempts to reach a token issuer.
    SASL_LOGIN_RETRY_BACKOFF_MS "sasl.login.retry.backoff.ms" Long = 100, Any, Low ReadOnly Later;

    /// Java class that fetches tokens; Gracchus loads no Java classes.
    SASL_OAUTHBEARER_JWT_RETRIEVER_CLASS "sasl.oauthbearer.jwt.retriever.class" Class =
        "org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever", Any, Medium ReadOnly
        Never;

    /// Java class that checks tokens; Gracchus has its own check only.
    SASL_OAUTHBEARER_JWT_VALIDATOR_CLASS "sasl.oauthbearer.jwt.validator.class" Class =
        "org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator", Any, Medium ReadOnly
        Never;

    /// The scope asked for when this node fetches a token for itself.
    SASL_OAUTHBEARER_SCOPE "sasl.oauthbearer.scope" OptText = None, Any, Medium ReadOnly Later;

    /// The client id under which this node fetches a token.
    SASL_OAUTHBEARER_CLIENT_CREDENTIALS_CLIENT_ID "sasl.oauthbearer.client.credentials.client.id"
        OptText = None, Any, Medium ReadOnly Later;

    /// The secret that belongs to that client id.
    SASL_OAUTHBEARER_CLIENT_CREDENTIALS_CLIENT_SECRET
        "sasl.oauthbearer.client.credentials.client.secret" Secret = None, Any, Medium ReadOnly
        Later;

    /// How an assertion for a token issuer is signed.
    SASL_OAUTHBEARER_ASSERTION_ALGORITHM "sasl.oauthbearer.assertion.algorithm" Text = "RS256",
        OneOf(&["ES256", "RS256"]), Medium ReadOnly Later;

    /// The audience named in an assertion.
    SASL_OAUTHBEARER_ASSERTION_CLAIM_AUD "sasl.oauthbearer.assertion.claim.aud" OptText = None,
        Any, Medium ReadOnly Later;

    /// How long an assertion is valid.
    SASL_OAUTHBEARER_ASSERTION_CLAIM_EXP_SECONDS "sasl.oauthbearer.assertion.claim.exp.seconds" Int
        = 300, Between(0, 86_400), Low ReadOnly Later;

    /// The issuer named in an assertion.
    SASL_OAUTHBEARER_ASSERTION_CLAIM_ISS "sasl.oauthbearer.assertion.claim.iss" OptText = None,
        Any, Medium ReadOnly Later;

    /// Whether an assertion carries an id of its own.
    SASL_OAUTHBEARER_ASSERTION_CLAIM_JTI_INCLUDE "sasl.oauthbearer.assertion.claim.jti.include"
        Bool = false, Any, Medium ReadOnly Later;

    /// How far in the past an assertion's validity begins.
    SASL_OAUTHBEARER_ASSERTION_CLAIM_NBF_SECONDS "sasl.oauthbearer.assertion.claim.nbf.seconds" Int
        = 60, Between(0, 3600), Low ReadOnly Later;

    /// The subject named in an assertion.
    SASL_OAUTHBEARER_ASSERTION_CLAIM_SUB "sasl.oauthbearer.assertion.claim.sub" OptText = None,
        Any, Medium ReadOnly Later;

    /// File that holds a ready-made assertion.
    SASL_OAUTHBEARER_ASSERTION_FILE "sasl.oauthbearer.assertion.file" OptText = None, Any, Medium
        ReadOnly Later;

    /// File that holds the key with which assertions are signed.
    SASL_OAUTHBEARER_ASSERTION_PRIVATE_KEY_FILE "sasl.oauthbearer.assertion.private.key.file"
        OptText = None, Any, Medium ReadOnly Later;

    /// Passphrase of that key.
    SASL_OAUTHBEARER_ASSERTION_PRIVATE_KEY_PASSPHRASE
        "sasl.oauthbearer.assertion.private.key.passphrase" Secret = None, Any, Medium ReadOnly
        Later;

    /// File with further headers and claims for assertions.
    SASL_OAUTHBEARER_ASSERTION_TEMPLATE_FILE "sasl.oauthbearer.assertion.template.file" OptText =
        None, Any, Medium ReadOnly Later;

    /// The claim of a token that holds its scopes.
    SASL_OAUTHBEARER_SCOPE_CLAIM_NAME "sasl.oauthbearer.scope.claim.name" Text = "scope", Any, Low
        ReadOnly Later;

    /// The claim of a token that holds the user's name.
    SASL_OAUTHBEARER_SUB_CLAIM_NAME "sasl.oauthbearer.sub.claim.name" Text = "sub", Any, Low
        ReadOnly Later;

    /// Address of the token issuer.
    SASL_OAUTHBEARER_TOKEN_ENDPOINT_URL "sasl.oauthbearer.token.endpoint.url" OptText = None, Any,
        Medium ReadOnly Later;

    /// Address or file of the keys with which tokens are checked.
    SASL_OAUTHBEARER_JWKS_ENDPOINT_URL "sasl.oauthbearer.jwks.endpoint.url" OptText = None, Any,
        Medium ReadOnly Later;

    /// How often those keys are fetched again.
    SASL_OAUTHBEARER_JWKS_ENDPOINT_REFRESH_MS "sasl.oauthbearer.jwks.endpoint.refresh.ms" Long =
        3_600_000, Any, Low ReadOnly Later;

    /// The first pause after such a fetch failed.
    SASL_OAUTHBEARER_JWKS_ENDPOINT_RETRY_BACKOFF_MS
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms" Long = 100, Any, Low ReadOnly Later;

    /// The longest pause after such fetches failed.
    SASL_OAUTHBEARER_JWKS_ENDPOINT_RETRY_BACKOFF_MAX_MS
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms" Long = 10_000, Any, Low ReadOnly
        Later;

    /// By how much clocks may differ when the dates of a token are checked.
    SASL_OAUTHBEARER_CLOCK_SKEW_SECONDS "sasl.oauthbearer.clock.skew.seconds" Int = 30, Any, Low
        ReadOnly Later;

    /// Whether tokens pass though no expected audience is configured.
    SASL_OAUTHBEARER_ALLOW_UNVERIFIED_AUDIENCE "sasl.oauthbearer.allow.unverified.audience" Bool =
        false, Any, Medium ReadOnly Later;

    /// The audiences of which a token must name one.
    SASL_OAUTHBEARER_EXPECTED_AUDIENCE "sasl.oauthbearer.expected.audience" List = "", List, High
        ReadOnly Later;

    /// Whether tokens pass though no expected issuer is configured.
    SASL_OAUTHBEARER_ALLOW_UNVERIFIED_ISSUER "sasl.oauthbearer.allow.unverified.issuer" Bool =
        false, Any, Medium ReadOnly Later;

    /// The issuer that a token must name.
    SASL_OAUTHBEARER_EXPECTED_ISSUER "sasl.oauthbearer.expected.issuer" OptText = None, Any, High
        ReadOnly Later;

    /// The secret with which delegation tokens are made and checked; the same on every node.
    DELEGATION_TOKEN_SECRET_KEY "delegation.token.secret.key" Secret = None, Any, Medium ReadOnly
        Later;

    /// How long a delegation token can be renewed at all.
    DELEGATION_TOKEN_MAX_LIFETIME_MS "delegation.token.max.lifetime.ms" Long = 604_800_000,
        AtLeast(1), Medium ReadOnly Later;

    /// How long a delegation token is valid after it was made or renewed.
    DELEGATION_TOKEN_EXPIRY_TIME_MS "delegation.token.expiry.time.ms" Long = 86_400_000,
        AtLeast(1), Medium ReadOnly Later;

    /// How often expired delegation tokens are removed.
    DELEGATION_TOKEN_EXPIRY_CHECK_INTERVAL_MS "delegation.token.expiry.check.interval.ms" Long =
        3_600_000, AtLeast(1), Low ReadOnly Later;
}
