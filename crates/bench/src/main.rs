//! `make bench`: speed and memory of the simulator, compared with a baseline of the machine.
//!
//! Each measurement runs in a separate process, so that its peak memory is its own. A bare binary
//! heap runs at the same pending sizes in the same run, so that a slow or busy machine is visible.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a benchmark prints and reads the clock"
)]

mod atm;
mod captures;
mod cells;
mod child;
mod costs;
mod datapath;
mod disciplines;
mod instructions;
mod live;
mod machine_baseline;
mod measurement;
mod networks;
mod queues;
mod runs;
mod simulate;
mod startup;
mod traffic;

use std::process::ExitCode;

use clap::Parser;
use comfy_table::{LineStyle, Table, TableStyle};

use measurement::Measurement;

/// Measure the simulator and a baseline of the machine.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// Times that each measurement runs; the fastest counts, because disturbances only slow a run
    /// down.
    #[arg(long, default_value_t = 5)]
    repeat: u32,
    /// Only measurements whose name contains this.
    #[arg(long, default_value = "")]
    only: String,
    /// Print JSON instead of a table.
    #[arg(long)]
    json: bool,
    /// Do not count instructions, which needs valgrind and takes some minutes.
    #[arg(long)]
    no_instructions: bool,
    /// Run this one measurement in this process, and print it as a line of JSON.
    #[arg(long, hide = true)]
    child: Option<String>,
    /// With `--child`: the shortest run from which instructions can be counted.
    #[arg(long, hide = true)]
    brief: bool,
    /// Accepted, because `cargo bench` passes it.
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if let Some(name) = &arguments.child {
        let Some(measurement) = child::run(name, arguments.brief) else {
            eprintln!("error: no measurement is called {name}");
            return ExitCode::from(2);
        };
        println!("{}", serde_json::to_string(&measurement).expect("a measurement is plain data"));
        return ExitCode::SUCCESS;
    }
    let mut rows = Vec::new();
    let mut names = child::names();
    names.retain(|name| name.contains(&arguments.only));
    if let Some(obstacle) = live::obstacle() {
        let before = names.len();
        names.retain(|name| !live::is_one(name));
        if names.len() < before {
            eprintln!("skipped: measurements that begin with \"live:\", because {obstacle}");
        }
    }
    let prepared = names.iter().any(|name| captures::is_one(name)).then(captures::Prepared::new).transpose();
    let _capture = match prepared {
        Ok(capture) => capture,
        Err(error) => {
            eprintln!("error: the capture: {error}");
            return ExitCode::from(2);
        }
    };
    for name in names {
        // Live measurements take turns by themselves.
        let repeat = if live::is_one(&name) { 1 } else { arguments.repeat };
        match child::best_of(&name, repeat) {
            Ok(mut measurement) => {
                if !arguments.no_instructions {
                    count_instructions(&mut measurement);
                }
                rows.push(measurement);
            }
            Err(error) => {
                eprintln!("error: {name}: {error}");
                return ExitCode::from(2);
            }
        }
    }
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&rows).expect("measurements are plain data"));
    } else {
        print_table(&rows);
        queues::print_table(&rows);
        datapath::print_table(&rows);
        atm::print_table(&rows);
        captures::print_table(&rows);
        live::print_tables(&rows);
    }
    ExitCode::SUCCESS
}

fn count_instructions(measurement: &mut Measurement) {
    let name = &measurement.name;
    if let Some(queue) = &mut measurement.queue {
        queue.instructions_per_packet = instructions::count(name, Some(queues::COUNTED)).map(queues::per_packet);
    } else if let Some(datapath) = &mut measurement.datapath {
        datapath.instructions_per_packet = instructions::count(name, Some(datapath::COUNTED)).map(datapath::per_packet);
    } else if let Some(cells) = &mut measurement.atm {
        let instructions = instructions::count(name, Some(atm::COUNTED));
        cells.instructions_per_cell_hop = instructions.map(|count| cells.per_cell_hop(count));
    } else if runs::is_one(name) {
        measurement.instructions = runs::instructions(name);
    } else if simulate::is_short(name) {
        measurement.instructions = instructions::count(name, None);
    }
}

fn print_table(rows: &[Measurement]) {
    if rows.iter().all(Measurement::has_a_table) {
        return;
    }
    let mut table = Table::new();
    table.load_style(TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─')));
    table.set_header([
        "measurement",
        "wall s",
        "events",
        "M events/s",
        "M hops/s",
        "M packets/s",
        "ns/event",
        "ns/packet",
        "instr/packet",
        "peak MiB",
        "state B/flow",
        "peak B/flow",
    ]);
    for row in rows.iter().filter(|row| !row.has_a_table()) {
        let rate =
            |count: u64| if count == 0 { String::new() } else { format!("{:.2}", count as f64 / row.wall_s / 1e6) };
        let each =
            |count: u64| if count == 0 { String::new() } else { format!("{:.1}", row.wall_s * 1e9 / count as f64) };
        table.add_row([
            row.name.clone(),
            format!("{:.4}", row.wall_s),
            row.events.to_string(),
            rate(row.events),
            rate(row.hops),
            rate(row.data_packets),
            each(row.events),
            each(row.data_packets),
            row.instructions.map_or(String::new(), |count| format!("{:.0}", count as f64 / row.data_packets as f64)),
            format!("{:.1}", row.peak_bytes as f64 / f64::from(1 << 20)),
            row.state_bytes_per_flow.map_or(String::new(), |bytes| format!("{bytes:.0}")),
            row.bytes_per_flow.map_or(String::new(), |bytes| format!("{bytes:.0}")),
        ]);
    }
    println!("{table}");
    println!(
        "best of several runs; each in its own process; `heap` and `wheel`: \
         one pop and one push an event at that pending size"
    );
}
