# Input: suite, peer, test, verdict, seconds, text. Output: the tables of docs/compatibility.md.

BEGIN {
    while ((getline line < reasons) > 0) {
        if (line ~ /^#/ || line == "") continue
        split(line, part, "\t")
        reason_suite[++reason_count] = part[1]
        reason_pattern[reason_count] = part[2]
        reason_text[reason_count] = part[3]
    }
}

$3 == "#title" { title[$1] = $4; suites[++suite_count] = $1; next }
$3 == "#version" { version[$1] = $4; next }
$4 == "part" { next }
{
    key = $1 SUBSEP $3
    if (!(key in seen)) { seen[key] = 1; tests[$1] = tests[$1] SUBSEP $3 }
    verdict[key, $2] = $4
    ran[$1, $2] = 1
    took[$1, $2] += $5
    said[key, $2] = $6
}

function reason(suite, test,    i) {
    for (i = 1; i <= reason_count; i++)
        if (reason_suite[i] == suite && test ~ ("^(" reason_pattern[i] ")$")) return reason_text[i]
    return ""
}

function shown(word) { return word == "" ? "not run" : word }

function cell(text) { gsub(/\|/, "\\|", text); return text }

END {
    print "\n| Suite | Version | Tests | Pass on Kafka | Pass on Gracchus | Pass on Kafka only |"
    print "|---|---|---|---|---|---|"
    for (i = 1; i <= suite_count; i++) {
        suite = suites[i]
        if (!ran[suite, "gracchus"] && !ran[suite, "kafka"]) {
            printf "| %s | | | not run | not run | |\n", title[suite]
            continue
        }
        n = split(tests[suite], list, SUBSEP)
        all = kafka = ours = worse = 0
        rows = skips = ""
        for (j = 2; j <= n; j++) {
            key = suite SUBSEP list[j]
            k = verdict[key, "kafka"]; g = verdict[key, "gracchus"]
            all++; kafka += k == "pass"; ours += g == "pass"; worse += k == "pass" && g != "pass"
            if (k == g && k != "fail") continue
            why = reason(suite, list[j])
            if (why == "") why = "not explained: " said[key, g == "pass" ? "kafka" : "gracchus"]
            rows = rows sprintf("| `%s` | %s | %s | %s |\n", list[j], shown(k), shown(g), cell(why))
        }
        printf "| %s | %s | %d | %s | %s | %s |\n", title[suite], version[suite], all,
            ran[suite, "kafka"] ? kafka : "not run", ran[suite, "gracchus"] ? ours : "not run",
            ran[suite, "kafka"] ? worse : ""
        detail[suite] = rows
    }
    for (i = 1; i <= suite_count; i++) {
        suite = suites[i]
        if (detail[suite] == "") continue
        printf "\n## %s\n\nTests that differ, or that fail on both:\n\n", title[suite]
        print "| Test | Kafka | Gracchus | Reason |\n|---|---|---|---|"
        printf "%s", detail[suite]
    }
}
