//! The view on a real pseudo-terminal. The program under test is this one, as [`program`].

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod pty;

use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lastmile_terminal::{Panel, Series, Snapshot, Unit, View, say};
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGINT, SIGQUIT, SIGUSR1};

use pty::Terminal;

/// A program with a view: it ends at Ctrl-C, and goes on after a panic of another thread at SIGUSR1.
#[test]
#[ignore = "a program for the other tests"]
fn program() {
    let [interrupted, disturbed] = std::array::from_fn(|_| Arc::new(AtomicBool::new(false)));
    signal_hook::flag::register(SIGINT, Arc::clone(&interrupted)).unwrap();
    signal_hook::flag::register(SIGUSR1, Arc::clone(&disturbed)).unwrap();
    let Some(view) = View::new("the program") else {
        println!("no view");
        return;
    };
    assert!(View::new("another").is_none());
    view.note("noted");
    let mut said = false;
    for step in 1..600_u32 {
        let rate = Series::new("rate", Unit::BitsPerSecond, Some(f64::from(step) * 1e3)).out_of(1e6);
        let panels = ["up", "down"].map(|title| Panel::new(title, vec![rate.clone()]));
        view.update(Snapshot { status: format!("step {step}"), panels: panels.into(), ..Snapshot::default() });
        std::thread::sleep(Duration::from_millis(50));
        if !std::mem::replace(&mut said, true) {
            assert!(say("said"));
        }
        if !view.is_open() {
            assert!(!say("lost"));
            println!("left at step {step}");
            break;
        }
        if disturbed.swap(false, Ordering::AcqRel) {
            let _ = std::thread::spawn(|| panic!("out of order")).join();
        }
    }
    drop(view);
    // Ctrl-\ and Ctrl-Z act as before.
    while !interrupted.load(Ordering::Acquire) {
        std::thread::sleep(Duration::from_millis(20));
    }
    println!("the end");
}

fn start(size: (u16, u16), variables: &[(&str, &str)]) -> Terminal {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "program", "--ignored", "--nocapture"]);
    command.env("TERM", "xterm").env("LC_ALL", "C.UTF-8").env_remove("NO_COLOR").envs(variables.iter().copied());
    Terminal::start(&command, size)
}

fn send(terminal: &Terminal, signal: Signal) {
    kill_process(Pid::from_child(&terminal.child), signal).unwrap();
}

fn until_stopped(terminal: &Terminal) {
    let state = || std::fs::read_to_string(format!("/proc/{}/stat", terminal.child.id())).unwrap();
    for _ in 0..1000 {
        if state().contains(") T ") {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn values_are_on_the_screen_and_q_leaves_it_as_it_was() {
    let mut terminal = start((80, 24), &[]);
    let text = terminal.until_shown("step 3");
    for words in ["the program", "── up ───", "── down ──", "kbit/s", "of 1 Mbit/s", "▁▁", "noted"]
    {
        assert!(text.contains(words), "{words}:\n{text}");
    }
    terminal.assert_view(true);
    terminal.keys("xq");
    let text = terminal.until_shown("left at step");
    terminal.assert_view(false);
    // Messages that came meanwhile are below what was there, and above what the program prints next.
    let place = |words| text.find(words).unwrap_or_else(|| panic!("{words}:\n{text}"));
    assert!(place("running 1 test") < place("\nsaid\n") && place("\nsaid\n") < place("left at step"), "{text}");
    assert!(!text.contains("noted"), "{text}");
    terminal.keys("\x03");
    terminal.until_shown("the end");
    assert!(terminal.end().success());
    terminal.assert_view(false);
}

#[test]
fn an_interrupt_closes_the_view() {
    let mut terminal = start((80, 24), &[]);
    terminal.until_shown("step 3");
    terminal.keys("\x03");
    let text = terminal.until_shown("the end");
    assert!(text.contains("left at step"), "{text}");
    terminal.assert_view(false);
    assert!(terminal.end().success());
}

#[test]
fn the_message_of_a_panic_is_readable() {
    let terminal = start((80, 24), &[]);
    terminal.until_shown("step 3");
    send(&terminal, Signal::USR1);
    // The view does not come back over it.
    let text = terminal.until_shown("left at step");
    assert!(text.contains("out of order"), "{text}");
    terminal.assert_view(false);
}

#[test]
fn a_stopped_program_gives_the_terminal_back_and_takes_it_again() {
    let mut terminal = start((80, 24), &[]);
    terminal.until_shown("step 3");
    terminal.keys("\x1a");
    terminal.until("the usual screen", |screen| !screen.alternate_screen());
    until_stopped(&terminal);
    terminal.assert_view(false);
    send(&terminal, Signal::CONT);
    terminal.until("the view", |screen| screen.alternate_screen() && screen.contents().contains("── up ──"));
    terminal.assert_view(true);
    // After the view, too.
    terminal.keys("q");
    terminal.until_shown("left at step");
    terminal.keys("\x1a");
    until_stopped(&terminal);
    send(&terminal, Signal::CONT);
    terminal.keys("\x1c");
    assert_eq!(terminal.end().signal(), Some(SIGQUIT));
}

#[test]
fn a_program_that_is_quit_gives_the_terminal_back() {
    let mut terminal = start((80, 24), &[]);
    terminal.until_shown("step 3");
    terminal.keys("\x1c");
    assert_eq!(terminal.end().signal(), Some(SIGQUIT));
    terminal.assert_view(false);
}

#[test]
fn a_resized_window_is_filled() {
    let terminal = start((60, 20), &[]);
    terminal.until_shown("step 3");
    let beside = |screen: &vt100::Screen| {
        screen.contents().lines().any(|line| line.contains("── up ") && line.contains("── down "))
    };
    assert!(!terminal.look(beside));
    terminal.resize(120, 40);
    terminal.until("panels side by side", beside);
    terminal.resize(40, 10);
    let text = terminal.until("a narrow view", |screen| screen.contents().contains("── up ──") && !beside(screen));
    assert!(text.lines().all(|line| line.chars().count() <= 40), "{text}");
}

#[test]
fn a_terminal_without_unicode_and_colours_gets_neither() {
    let coloured = |terminal: &Terminal| {
        terminal.look(|screen| {
            let cells = (0..24).flat_map(|row| (0..80).map(move |column| (row, column)));
            cells
                .filter_map(|(row, column)| screen.cell(row, column))
                .any(|cell| cell.fgcolor() != vt100::Color::Default)
        })
    };
    let plain = start((80, 24), &[("LC_ALL", "C"), ("NO_COLOR", "1")]);
    let text = plain.until_shown("step 9");
    assert!(text.contains("-- up ---") && text.is_ascii(), "{text}");
    assert!(!coloured(&plain));
    let usual = start((80, 24), &[]);
    usual.until_shown("step 9");
    assert!(coloured(&usual));
}

#[test]
fn a_terminal_that_cannot_place_the_cursor_gets_no_view() {
    let mut terminal = start((80, 24), &[("TERM", "dumb")]);
    terminal.until_shown("no view");
    assert!(terminal.end().success());
}
