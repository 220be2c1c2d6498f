//! The fault campaigns, in the short form that every test run can afford. The long form is the same command with larger
//! numbers: `stockade drill crash --rounds 5000`, `stockade drill hang-up --times 10000`.

use crate::support::{output, program};
use serde_json::Value;

fn drill(flags: &[&str]) -> Value {
    let mut command = program();
    command.arg("drill").args(flags).arg("--json");
    let (code, stdout, stderr) = output(command);
    let report: Value = serde_json::from_str(&stdout)
        .unwrap_or_else(|error| panic!("{error}: {stdout:?}, stderr {stderr:?}"));
    assert_eq!(report["findings"], serde_json::json!([]), "{report:#}");
    assert_eq!((code, stderr.as_str()), (0, ""));
    report
}

#[test]
fn twenty_kills_under_load_lose_nothing_and_repeat_nothing() {
    let report = drill(&["crash", "--rounds", "20"]);
    assert_eq!(report["faults"], 20);
    // Without requests under way at the kills, the drill would show nothing.
    assert!(report["in_doubt"].as_u64().unwrap() >= 20, "{report}");
    assert!(report["answered"].as_u64().unwrap() >= 200, "{report}");
}

#[test]
fn a_thousand_hang_ups_leave_every_command_whole_or_absent() {
    let report = drill(&["hang-up", "--times", "1000"]);
    assert_eq!(report["faults"], 1_000);
    assert!(report["in_doubt"].as_u64().unwrap() >= 50, "{report}");
    assert!(report["happened"].as_u64().unwrap() >= 1, "{report}");
}
