//! Cases over command lines.

use clap::{CommandFactory, Parser};

use super::Arguments;

/// `want` is the file and the overrides, or `error`.
#[track_caller]
fn check(line: &str, want: &str) {
    let words = std::iter::once("gracchus").chain(line.split_whitespace());
    let found = match Arguments::try_parse_from(words) {
        Err(_) => "error".to_owned(),
        Ok(arguments) => {
            let file = arguments.config_file().map(|path| path.display().to_string());
            let pairs: Vec<_> =
                arguments.overrides.iter().map(|(k, v)| format!("{k}={v}")).collect();
            format!("{} {}", file.as_deref().unwrap_or("-"), pairs.join(" "))
        }
    };
    assert_eq!(found.trim(), want, "{line}");
}

#[test]
fn lines() {
    check("", "-");
    check("server.properties", "server.properties");
    check("--config a.properties", "a.properties");
    check("--config=a --override x=1 --override y=a=b", "a x=1 y=a=b");
    check("server.properties --override node.id=3", "server.properties node.id=3");
    check("--override empty=", "- empty=");
    check("--override nothing", "error");
    check("--override =1", "error");
    check("--config a b", "error");
    check("a b", "error");
    check("--nonsense", "error");
    check("--version", "error"); // clap's way to say: print and stop.
}

#[test]
fn the_definition_is_sound_and_helps() {
    Arguments::command().debug_assert();
    let help = Arguments::command().render_long_help().to_string();
    for part in ["kcat -b 127.0.0.1:9092", "log.flush.interval.messages", "--override <KEY=VALUE>"]
    {
        assert!(help.contains(part), "{part} is missing in\n{help}");
    }
}
