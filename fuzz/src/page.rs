//! Pages and drawings: independent parsers find the elements of a run with harmless names. And the
//! tables of that run.
//!
//! The input is a list of texts, as in [`crate::text`].

use std::cell::RefCell;

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::{BufferQueue, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts};
use lastmile_results::report;
use lastmile_results::schema::{Flow, FlowLimits, Inputs, Link, Phase, PhaseFlow, RunFacts, Summary};
use lastmile_results::{Run, Series, table};
use lastmile_text::escape;

use crate::text::texts;

/// Panics if a property does not hold.
pub fn check(input: &[u8]) {
    let texts = texts(input);
    let hostile = run(&texts);
    let harmless: Vec<String> = texts.iter().map(|text| text.chars().map(harmless).collect()).collect();
    let harmless = run(&harmless);

    let page = report::page(std::slice::from_ref(&hostile));
    assert!(!page.contains(|c| escape::is_hidden(c) && !matches!(c, '\n' | '\t')), "{page:?}");
    assert_eq!(elements(&page), elements(&report::page(std::slice::from_ref(&harmless))));
    let pair = |run: &Run| [run.clone(), run.clone()];
    assert_eq!(elements(&report::page(&pair(&hostile))), elements(&report::page(&pair(&harmless))));

    let drawing = |run: &Run| report::figure(std::slice::from_ref(run), &["goodput_bps", "queue_bytes"]);
    let text = drawing(&hostile);
    let xml = |text: &str| {
        let document = roxmltree::Document::parse(text).unwrap_or_else(|error| panic!("{error}: {text:?}"));
        let elements = document.descendants().filter(roxmltree::Node::is_element);
        elements.map(|node| (node.tag_name().name().to_owned(), node.attributes().count())).collect::<Vec<_>>()
    };
    assert_eq!(xml(&text), xml(&drawing(&harmless)));

    let shown_text = table::run(&hostile.summary, 120);
    assert!(!shown_text.contains(|c| escape::is_hidden(c) && c != '\n'), "{shown_text:?}");
}

/// The character, or a letter in place of one with a meaning in markup, XML or a terminal. Texts
/// keep their lengths and words.
fn harmless(c: char) -> char {
    if "<>&\"'`".contains(c) || escape::is_hidden(c) { 'x' } else { c }
}

/// A run in which each kind of name is one of the texts.
fn run(texts: &[String]) -> Run {
    let text = |index: usize| texts[index % texts.len()].clone();
    let (flow, link, phase) = (text(1), text(2), text(3));
    let series = |name: &str, entity: &str| Series {
        name: name.into(),
        entity: entity.into(),
        points: vec![(0.0, 1e6), (5.0, 2e6), (10.0, 1e6)],
    };
    let limits = FlowLimits { explanation: text(4), ..FlowLimits::default() };
    let summary = Summary {
        run: RunFacts {
            scenario: text(0),
            duration_s: 10.0,
            inputs: Inputs { file: Some(text(5)), text: Some(text(4)), set: vec![text(6)] },
            ..RunFacts::default()
        },
        flows: vec![Flow { name: flow.clone(), goodput_bps: 1e6, limits, ..Flow::default() }],
        links: vec![Link { name: link.clone(), ..Link::default() }],
        phases: vec![Phase {
            name: phase,
            to_s: 10.0,
            flows: vec![PhaseFlow { name: flow.clone(), explanation: text(4), ..PhaseFlow::default() }],
            ..Phase::default()
        }],
        ..Summary::default()
    };
    let series = vec![series("goodput_bps", &flow), series("queue_bytes", &link)];
    Run { label: text(7), own: vec![text(6)], summary, series }
}

/// Every element of a page with the names of its attributes, and every comment.
fn elements(page: &str) -> Vec<String> {
    let input = BufferQueue::default();
    input.push_back(StrTendril::from_slice(page));
    let tokenizer = Tokenizer::new(Elements::default(), TokenizerOpts::default());
    let _ = tokenizer.feed(&input);
    tokenizer.end();
    tokenizer.sink.0.into_inner()
}

#[derive(Default)]
struct Elements(RefCell<Vec<String>>);

impl TokenSink for Elements {
    type Handle = ();

    fn process_token(&self, token: Token, _: u64) -> TokenSinkResult<()> {
        match token {
            Token::TagToken(tag) => {
                let names: Vec<String> = tag.attrs.iter().map(|attribute| attribute.name.local.to_string()).collect();
                self.0.borrow_mut().push(format!("{:?} {} {}", tag.kind, tag.name, names.join(" ")));
            }
            Token::CommentToken(comment) => self.0.borrow_mut().push(format!("comment {comment}")),
            _ => {}
        }
        TokenSinkResult::Continue
    }
}
