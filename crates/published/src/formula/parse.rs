//! Reads formulas and conditions.

use std::collections::VecDeque;
use std::str::FromStr;

use serde::de::{Deserialize, Deserializer, Error as _};

use super::{Condition, FUNCTIONS, Formula, Operator, arity};
use crate::experiments::metric;

/// How deep formulas may nest: more than any needs, less than a stack holds.
const DEEPEST: usize = 32;

#[derive(Clone, PartialEq, Debug)]
enum Token {
    Number(f64),
    Text(String),
    Name(String),
    Operator(Operator),
    Open,
    Close,
    Comma,
    At,
}

struct Reader {
    tokens: VecDeque<Token>,
    depth: usize,
}

impl FromStr for Formula {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        whole(text, Reader::comparison)
    }
}

impl FromStr for Condition {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        whole(text, Reader::condition)
    }
}

fn whole<T>(text: &str, read: fn(&mut Reader) -> Result<T, String>) -> Result<T, String> {
    let tokens = tokens(text).map_err(|error| format!("{error} in \"{text}\""))?;
    let mut reader = Reader { tokens, depth: 0 };
    let made = read(&mut reader).map_err(|error| format!("{error} in \"{text}\""))?;
    match reader.tokens.front() {
        None => Ok(made),
        Some(token) => Err(format!("{} follows the end of the formula in \"{text}\"", token.as_text())),
    }
}

const SIGNS: [(&str, Token); 14] = [
    ("<=", Token::Operator(Operator::AtMost)),
    (">=", Token::Operator(Operator::AtLeast)),
    ("==", Token::Operator(Operator::Equal)),
    ("!=", Token::Operator(Operator::Unequal)),
    ("<", Token::Operator(Operator::Less)),
    (">", Token::Operator(Operator::Greater)),
    ("+", Token::Operator(Operator::Add)),
    ("-", Token::Operator(Operator::Subtract)),
    ("*", Token::Operator(Operator::Multiply)),
    ("/", Token::Operator(Operator::Divide)),
    ("(", Token::Open),
    (")", Token::Close),
    (",", Token::Comma),
    ("@", Token::At),
];

fn tokens(text: &str) -> Result<VecDeque<Token>, String> {
    let mut tokens = VecDeque::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let (token, length) = token(rest, first)?;
        tokens.push_back(token);
        rest = rest[length..].trim_start();
    }
    Ok(tokens)
}

/// The token that a text begins with, and its length in bytes.
fn token(rest: &str, first: char) -> Result<(Token, usize), String> {
    Ok(match first {
        '0'..='9' => {
            let number = &rest[..number_length(rest)];
            (Token::Number(number.parse().map_err(|_| format!("{number} is no number"))?), number.len())
        }
        '\'' => {
            let (text, _) = rest[1..].split_once('\'').ok_or_else(|| format!("{rest} has no closing quote"))?;
            (Token::Text(text.to_owned()), text.len() + 2)
        }
        'a'..='z' | 'A'..='Z' | '_' => {
            let part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
            let name = &rest[..rest.find(|c| !part(c)).unwrap_or(rest.len())];
            (Token::Name(name.to_owned()), name.len())
        }
        _ => {
            let known = SIGNS.iter().find(|(sign, _)| rest.starts_with(sign));
            let (sign, token) = known.ok_or_else(|| format!("{first} has no meaning"))?;
            (token.clone(), sign.len())
        }
    })
}

/// Digits, a point, and an exponent.
fn number_length(text: &str) -> usize {
    let mut before = ' ';
    text.find(|c: char| {
        let goes_on = c.is_ascii_digit() || c == '.' || c == 'e' || (c == '-' && before == 'e');
        before = c;
        !goes_on
    })
    .unwrap_or(text.len())
}

impl Token {
    fn as_text(&self) -> String {
        let sign = || SIGNS.iter().find(|(_, token)| token == self).map_or("", |(sign, _)| *sign);
        match self {
            Self::Number(number) => number.to_string(),
            Self::Text(text) => format!("'{text}'"),
            Self::Name(name) => name.clone(),
            _ => sign().to_owned(),
        }
    }
}

const COMPARISONS: [Operator; 6] =
    [Operator::Less, Operator::AtMost, Operator::Greater, Operator::AtLeast, Operator::Equal, Operator::Unequal];

impl Reader {
    fn next(&mut self) -> Option<Token> {
        self.tokens.pop_front()
    }

    fn take(&mut self, token: &Token) -> bool {
        let is_it = self.tokens.front() == Some(token);
        if is_it {
            self.next();
        }
        is_it
    }

    fn need(&mut self, token: &Token) -> Result<(), String> {
        if self.take(token) { Ok(()) } else { Err(format!("a {} is missing", token.as_text())) }
    }

    fn operator(&mut self, of: &[Operator]) -> Option<Operator> {
        let Some(Token::Operator(operator)) = self.tokens.front() else { return None };
        let operator = of.iter().copied().find(|known| known == operator)?;
        self.next();
        Some(operator)
    }

    /// `a < b < c`, `a as published`, `a as b`, `a not < b`.
    fn condition(&mut self) -> Result<Condition, String> {
        let first = self.sum()?;
        if self.take(&Token::Name("as".to_owned())) {
            let published = self.take(&Token::Name("published".to_owned()));
            return Ok(Condition::As(first, if published { None } else { Some(self.sum()?) }));
        }
        if self.take(&Token::Name("not".to_owned())) {
            self.need(&Token::Operator(Operator::Less))?;
            return Ok(Condition::NotBelow(first, self.sum()?));
        }
        let mut compared = Vec::new();
        let mut left = first;
        while let Some(operator) = self.operator(&COMPARISONS) {
            let right = self.sum()?;
            compared.push((left, operator, right.clone()));
            left = right;
        }
        if compared.is_empty() {
            return Err(
                "a condition needs one of < <= > >= ==, `as published`, `as` with a figure, or `not <`".to_owned()
            );
        }
        Ok(Condition::Compared(compared))
    }

    fn comparison(&mut self) -> Result<Formula, String> {
        let left = self.sum()?;
        match self.operator(&COMPARISONS) {
            Some(operator) => Ok(Formula::Operation(Box::new(left), operator, Box::new(self.sum()?))),
            None => Ok(left),
        }
    }

    fn sum(&mut self) -> Result<Formula, String> {
        self.chain(&[Operator::Add, Operator::Subtract], Self::product)
    }

    fn product(&mut self) -> Result<Formula, String> {
        self.chain(&[Operator::Multiply, Operator::Divide], Self::term)
    }

    fn chain(&mut self, of: &[Operator], part: fn(&mut Self) -> Result<Formula, String>) -> Result<Formula, String> {
        let mut left = part(self)?;
        while let Some(operator) = self.operator(of) {
            left = Formula::Operation(Box::new(left), operator, Box::new(part(self)?));
        }
        Ok(left)
    }

    fn term(&mut self) -> Result<Formula, String> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(format!("more than {DEEPEST} formulas inside one another"));
        }
        let made = match self.next() {
            Some(Token::Number(number)) => Formula::Number(number),
            Some(Token::Text(text)) => Formula::Text(text),
            Some(Token::Operator(Operator::Subtract)) => Formula::Negative(Box::new(self.term()?)),
            Some(Token::Open) => {
                let inside = self.comparison()?;
                self.need(&Token::Close)?;
                inside
            }
            Some(Token::Name(name)) => self.named(name)?,
            Some(token) => return Err(format!("{} where a value is needed", token.as_text())),
            None => return Err("a value is missing".to_owned()),
        };
        self.depth -= 1;
        Ok(made)
    }

    fn named(&mut self, name: String) -> Result<Formula, String> {
        let run = match self.take(&Token::At) {
            false => None,
            true => match self.next() {
                Some(Token::Name(run)) => Some(run),
                _ => return Err("after @ the name of a run is missing".to_owned()),
            },
        };
        if !self.take(&Token::Open) {
            return if run.is_none() { Ok(Formula::Name(name)) } else { Err(format!("{name} is no metric of a run")) };
        }
        let mut arguments = Vec::new();
        while !self.take(&Token::Close) {
            if !arguments.is_empty() {
                self.need(&Token::Comma)?;
            }
            arguments.push(self.comparison()?);
        }
        let (least, most) = arity(&name).ok_or_else(|| {
            let known: Vec<&str> = FUNCTIONS.iter().map(|known| known.0).chain(metric::names()).collect();
            format!("no function or metric is called {name}; known are {}", known.join(", "))
        })?;
        if !(least..=most).contains(&arguments.len()) {
            let takes = if least == most { least.to_string() } else { format!("{least} to {most}") };
            return Err(format!("{name} takes {takes} arguments, not {}", arguments.len()));
        }
        if run.is_some() && metric::arity(&name).is_none() {
            return Err(format!("{name} is no metric of a run"));
        }
        Ok(Formula::Call { function: name, run, arguments })
    }
}

impl<'de> Deserialize<'de> for Formula {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

impl<'de> Deserialize<'de> for Condition {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}
