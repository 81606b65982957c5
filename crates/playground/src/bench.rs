//! The state between requests: the results of the last run.

use std::rc::Rc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use lastmile_results::comparison::Comparison;
use lastmile_results::report::{self, Embedded};
use lastmile_results::{Run, json};
use lastmile_scenario::files::{Files, InMemory};
use lastmile_scenario::{Override, Scenario};
use lastmile_studies::compare;
use lastmile_studies::compare::rows::{Choice, Dimension};
use lastmile_studies::memory::Memory;
use lastmile_studies::run::STEPS;
use lastmile_studies::{Early, Error, Finished, Input, Job, Variant, Watch, simulate_untimed};
use lastmile_units::ByteCount;
use serde::Serialize;

use crate::catalogue::Catalogue;
use crate::request::{File, Findings, Reported, Request, Wrong, findings};

/// Memory of the runs of a request. A page has at most 4 GiB.
const MEMORY: ByteCount = ByteCount::new(2 << 30);
/// IP bytes of a full packet.
const PACKET_BITS: f64 = 12_000.0;

/// The answer to a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answer(
    /// JSON, or the bytes of a file.
    pub Vec<u8>,
);

/// The results of the last run, and the function that hears of progress.
pub struct Bench {
    progress: fn(f64),
    comparison: Option<Comparison>,
    report: Option<Embedded>,
}

impl Bench {
    /// A bench without results. `progress` is called with shares of the work that is done.
    #[must_use]
    pub fn new(progress: fn(f64)) -> Self {
        Self { progress, comparison: None, report: None }
    }

    /// Answers a request, which is JSON.
    pub fn answer(&mut self, request: &[u8]) -> Answer {
        match serde_json::from_slice(request) {
            Ok(request) => self.take(request),
            Err(error) => wrong(format!("no request: {error}")),
        }
    }

    fn take(&mut self, request: Request) -> Answer {
        match request {
            Request::Catalogue => json(&Catalogue::new()),
            Request::Compose { line, home } => compose(&line, &home),
            Request::Check(file) => json(&check(&file)),
            Request::Run(file) => self.run(&file).unwrap_or_else(|error| json(&Findings::from(&error))),
            Request::Compare { file, policies, vary } => {
                self.compare(&file, policies, &vary).unwrap_or_else(|error| json(&Findings::from(&error)))
            }
            Request::Experiment { publication, table, settings, figures } => {
                let figures: Vec<&str> = figures.iter().map(String::as_str).collect();
                match lastmile_published::point(&publication, &table, &settings, &figures) {
                    Ok(point) => json(&point),
                    Err(error) => wrong(error.to_string()),
                }
            }
            Request::Columns => match &self.report {
                Some(report) => Answer(report.data.columns().to_vec()),
                None => wrong("no report"),
            },
            Request::Summary { run } => self.file_of(run, |run| json::pretty(&run.summary).into_bytes()),
            Request::Page => match &self.comparison {
                Some(comparison) => Answer(page(comparison).into_bytes()),
                None => wrong("no report"),
            },
        }
    }

    /// A file of the run with this number.
    fn file_of(&self, number: usize, file: impl Fn(&Run) -> Vec<u8>) -> Answer {
        let mut runs = self.comparison.iter().flat_map(|comparison| &comparison.rows).flat_map(|row| &row.runs);
        runs.nth(number).map_or_else(|| wrong("no run of this number"), |run| Answer(file(run)))
    }

    fn run(&mut self, file: &File) -> Result<Answer, Error> {
        let set: Vec<Override> = file.set.iter().map(|pair| Override::set(pair)).collect();
        let variant = Variant::new("", &set, Vec::new());
        let scenario = load(file, &files(file), &variant.overrides)?;
        scenario.needs_traffic(&file.file)?;
        let done = self.simulate(file, std::slice::from_ref(&variant), std::slice::from_ref(&scenario))?;
        let runs = done.into_iter().map(|done| done.run).collect();
        self.report(Comparison::of(runs), &scenario)
    }

    fn compare(&mut self, file: &File, policies: Vec<String>, vary: &[(String, Vec<String>)]) -> Result<Answer, Error> {
        let common = file.set.iter().map(|pair| Override::set(pair)).collect();
        let dimension =
            |(key, values): &(String, Vec<String>)| Dimension::of_key(key, values.iter().map(String::as_str));
        let choice = Choice { common, policies, vary: vary.iter().map(dimension).collect(), seeds: None };
        let files = files(file);
        let scenario = load(file, &files, &choice.common)?;
        let read = |overrides: &[Override]| load(file, &files, overrides);
        let plan = compare::plan(&choice, (&scenario, &file.file), &read, &mut |_| {})?;
        let done = self.simulate(file, &plan.variants, &plan.scenarios)?;
        self.report(plan.compared(done).comparison, &scenario)
    }

    fn simulate(&self, file: &File, variants: &[Variant], scenarios: &[Scenario]) -> Result<Vec<Finished>, Error> {
        let memory = Memory::new(MEMORY, "");
        memory.admit(scenarios, Some(std::num::NonZeroUsize::MIN))?;
        let input = Input { file: Some(file.file.clone()), text: Some(file.text.clone()) };
        let mut done = Vec::new();
        for (number, (variant, scenario)) in variants.iter().zip(scenarios).enumerate() {
            let mut watch = Progress { tell: self.progress, before: number, runs: variants.len() };
            let job = Job { number, input: &input, variant, scenario };
            match simulate_untimed(job, &memory, &mut watch) {
                Ok(finished) => done.push(finished),
                Err(Early::Refused(error)) => return Err(Error::new(error)),
                Err(Early::Memory) => memory.outcome()?,
                Err(Early::Stop(never)) => match never {},
            }
        }
        Ok(done)
    }

    fn report(&mut self, comparison: Comparison, scenario: &Scenario) -> Result<Answer, Error> {
        let report = match comparison.rows.as_slice() {
            [row] if row.label.is_empty() => row.runs.first().map(report::embedded),
            _ => report::embedded_comparison(&comparison),
        };
        let report = report.ok_or_else(|| Error::new("nothing was simulated"))?;
        let all = || comparison.rows.iter().flat_map(|row| &row.runs);
        let answer = json(&Reported {
            body: &report.body,
            figures: &report.data,
            runs: all().map(|run| run.label.as_str()).collect(),
            events: all().map(|run| run.summary.run.events).sum(),
            findings: findings(scenario.warnings()),
        });
        (self.comparison, self.report) = (Some(comparison), Some(report));
        Ok(answer)
    }
}

/// Reports the share of the work of all runs.
struct Progress {
    tell: fn(f64),
    before: usize,
    runs: usize,
}

/// Nothing stops a run: a page ends its worker.
enum Never {}

impl Watch for Progress {
    type Stop = Never;

    fn pause(&mut self) -> Result<(), Never> {
        Ok(())
    }

    #[expect(clippy::cast_precision_loss, reason = "a share for a progress bar")]
    fn progress(&mut self, step: u64) -> Result<(), Never> {
        if step.is_multiple_of(STEPS / 100) {
            (self.tell)((self.before as f64 + step as f64 / STEPS as f64) / self.runs as f64);
        }
        Ok(())
    }
}

fn json(value: &impl Serialize) -> Answer {
    Answer(json::line(value).into_bytes())
}

fn wrong(message: impl Into<String>) -> Answer {
    json(&Wrong { wrong: message.into() })
}

/// The files that come with a scenario. A file that is no Base64 is as if it were not there.
fn files(file: &File) -> Rc<dyn Files> {
    let mut files = InMemory::default();
    for (path, text) in &file.files {
        files.add(path, text.as_bytes());
    }
    for (path, text) in &file.binary {
        if let Ok(bytes) = STANDARD.decode(text) {
            files.add(path, bytes);
        }
    }
    Rc::new(files)
}

fn load(file: &File, files: &Rc<dyn Files>, overrides: &[Override]) -> Result<Scenario, lastmile_scenario::Report> {
    Scenario::parse_among(Rc::clone(files), &file.file, &file.text, overrides)
}

fn compose(line: &str, home: &str) -> Answer {
    #[derive(Serialize)]
    struct Composed {
        text: String,
        notes: Vec<String>,
    }
    match (lastmile_library::line(line), lastmile_library::home(home)) {
        (Ok(line), Ok(home)) => {
            let composed = line.with(&home);
            json(&Composed { text: composed.text, notes: composed.notes })
        }
        (Err(unknown), _) | (_, Err(unknown)) => wrong(unknown.to_string()),
    }
}

fn check(file: &File) -> Findings {
    let set: Vec<Override> = file.set.iter().map(|pair| Override::set(pair)).collect();
    let scenario = match load(file, &files(file), &set) {
        Ok(scenario) => scenario,
        Err(report) => return Findings::from(&Error::Report(report)),
    };
    if let Err(report) = scenario.needs_traffic(&file.file) {
        return Findings::from(&Error::Report(report));
    }
    let network = scenario.network_ref();
    let duration_s = network.duration.as_secs_f64();
    let access = scenario.access();
    let rates = access.map(|access| [&access.down, &access.up].map(|hop| hop.line.rate));
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    let bits_per_s = rates.map(|rates| rates.into_iter().flatten().map(|rate| rate.as_bps() as f64).sum::<f64>());
    Findings {
        findings: findings(scenario.warnings()),
        packets_at_most: bits_per_s.map(|bps| bps * duration_s / PACKET_BITS),
    }
}

fn page(comparison: &Comparison) -> String {
    match comparison.rows.as_slice() {
        [row] if row.label.is_empty() => report::page(&row.runs),
        _ => report::comparison(comparison),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    const TEXT: &str = "duration = \"2 s\"\n[access]\ndown = { rate = \"2 Mbit/s\" }\nup = { rate = \"256 kbit/s\" }\n\
                        [[traffic]]\nkind = \"bulk\"\ndirection = \"down\"\n[[traffic]]\nkind = \"ping\"\n";

    fn ask(bench: &mut Bench, request: &Value) -> Value {
        serde_json::from_slice(&bench.answer(request.to_string().as_bytes()).0).unwrap()
    }

    /// The bytes are those of the file that the command writes.
    #[test]
    fn a_summary_is_that_of_the_command() {
        let mut bench = Bench::new(|_| {});
        let answer = ask(&mut bench, &serde_json::json!({ "do": "run", "file": "f.toml", "text": TEXT }));
        assert!(answer["body"].as_str().unwrap().contains("<h1>f</h1>"), "{answer}");
        let scenario = Scenario::parse("f.toml", TEXT, &[]).unwrap();
        let input = Input { file: Some("f.toml".into()), text: Some(TEXT.into()) };
        let variant = Variant::new("", &[], Vec::new());
        let job = Job { number: 0, input: &input, variant: &variant, scenario: &scenario };
        let mut watch = Progress { tell: |_| {}, before: 0, runs: 1 };
        let Ok(done) = simulate_untimed(job, &Memory::unlimited(), &mut watch) else { panic!("it runs") };
        let mut expected = Vec::new();
        done.run.summary.write_json(&mut expected).unwrap();
        let summary = bench.answer(br#"{"do":"summary","run":0}"#).0;
        assert!(summary == expected, "{}", String::from_utf8_lossy(&summary));
        assert!(!bench.answer(br#"{"do":"columns"}"#).0.is_empty());
    }

    #[test]
    fn a_comparison_has_a_row_for_each_policy_and_value() {
        let mut bench = Bench::new(|_| {});
        let request = serde_json::json!({ "do": "compare", "file": "f.toml", "text": TEXT, "policies": ["none", "cake"],
            "vary": [["access.up.rate", ["128 kbit/s", "512 kbit/s"]]] });
        let answer = ask(&mut bench, &request);
        assert_eq!(answer["runs"].as_array().unwrap().len(), 4, "{answer}");
        let body = answer["body"].as_str().unwrap();
        assert!(body.contains("cake, 512 kbit/s") && body.contains("none, 128 kbit/s"), "{body}");
    }

    #[test]
    fn errors_have_their_place_and_a_caret() {
        let mut bench = Bench::new(|_| {});
        let text = TEXT.replace("256 kbit/s", "256 kilos");
        for what in ["check", "run", "compare"] {
            let answer = ask(&mut bench, &serde_json::json!({ "do": what, "file": "f.toml", "text": text }));
            let finding = &answer["findings"][0];
            assert_eq!((&finding["at"][0], &finding["severity"]), (&4.into(), &"error".into()), "{answer}");
            assert!(finding["text"].as_str().unwrap().contains("^^^"), "{finding}");
        }
        let answer = ask(&mut bench, &serde_json::json!({ "do": "dance" }));
        assert!(answer["wrong"].as_str().unwrap().contains("dance"), "{answer}");
    }

    /// Kalyanaraman, Shekhar and Kidambi 1999, table 1: 1.52 Mbit/s at 64 kbit/s.
    #[test]
    fn a_point_of_a_published_experiment_has_its_figures_and_its_scenario() {
        let mut bench = Bench::new(|_| {});
        let request = serde_json::json!({ "do": "experiment", "publication": "kalyanaraman1999", "table": "1",
            "settings": { "up_bps": 64000, "duration_s": 30 }, "figures": ["downstream_throughput_mbps"] });
        let answer = ask(&mut bench, &request);
        let rate = answer["figures"]["downstream_throughput_mbps"].as_f64().unwrap();
        assert!((rate - 1.52).abs() < 0.05, "{answer}");
        assert!(answer["text"].as_str().unwrap().contains("[access]"), "{answer}");
        let mut request = request;
        request["settings"] = serde_json::json!({ "rate": 1 });
        let wrong = ask(&mut bench, &request);
        assert!(wrong["wrong"].as_str().unwrap().contains("up_bps"), "{wrong}");
    }

    /// A page has no file system: the files that a scenario names come with the request.
    #[test]
    fn a_trace_comes_with_the_request() {
        let text = TEXT.replace("rate = \"2 Mbit/s\"", "rate = \"2 Mbit/s\", trace = { file = \"traces/t.csv\" }");
        let mut bench = Bench::new(|_| {});
        let request = serde_json::json!({ "do": "check", "file": "f.toml", "text": text });
        let missing = ask(&mut bench, &request);
        assert!(missing["findings"][0]["message"].as_str().unwrap().contains("traces/t.csv"), "{missing}");
        let mut request = request;
        request["files"] = serde_json::json!({ "traces/t.csv": "at,rate\n0 s,2 Mbit/s\n1 s,1 Mbit/s\n" });
        let found = ask(&mut bench, &request);
        assert_eq!(found["findings"].as_array().unwrap().len(), 0, "{found}");
        // Two seconds of 1.5 Mbit/s in the mean and 256 kbit/s, in packets of 1500 bytes.
        assert!((found["packets_at_most"].as_f64().unwrap() - 292.67).abs() < 0.01, "{found}");
    }
}
