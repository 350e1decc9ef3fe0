# Input: peer, "client version: ability", verdict, seconds, text. Output: docs/clients.md's table.

$3 == "part" || $2 ~ /^#/ { next }
{
    at = index($2, ": ")
    client = substr($2, 1, at - 1); ability = substr($2, at + 2)
    if (!(client in known)) { known[client] = 1; clients[++client_count] = client }
    if (!(ability in row)) { row[ability] = 1; abilities[++ability_count] = ability }
    verdict[client, ability, $1] = $3
    if ($3 == "fail") said[client, ability, $1] = $5
}

function cell(client, ability,    ours, theirs) {
    ours = verdict[client, ability, "gracchus"]; theirs = verdict[client, ability, "kafka"]
    if (ours == "" && theirs == "") return ""
    if (ours == "") ours = "not run"
    if (theirs == "") theirs = "not run"
    if (ours == theirs) return ours == "pass" ? "ok" : "**" ours "** on both"
    return "**" ours "**, Kafka: " theirs
}

END {
    line = "| |"; rule = "|---|"
    for (c = 1; c <= client_count; c++) { line = line " " clients[c] " |"; rule = rule "---|" }
    print line "\n" rule
    for (a = 1; a <= ability_count; a++) {
        line = "| " abilities[a] " |"
        for (c = 1; c <= client_count; c++) line = line " " cell(clients[c], abilities[a]) " |"
        print line
    }
    for (c = 1; c <= client_count; c++)
        for (a = 1; a <= ability_count; a++)
            for (p = 1; p <= 2; p++) {
                peer = p == 1 ? "gracchus" : "kafka"
                if ((clients[c], abilities[a], peer) in said)
                    printf "\n- %s, %s, on %s: %s", clients[c], abilities[a], peer,
                        said[clients[c], abilities[a], peer]
            }
}
