//! The runs of a row with one seed: their scenarios by the rules, and the figures measured in them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use lastmile_queueing::random::Stream;
use lastmile_scenario::Scenario;

use super::{Add, Experiment, Plan, Rule, Setting};
use crate::data::Table;
use crate::experiments::trial::{Overrides, Trial};
use crate::experiments::{ExperimentError, metric, scenarios};
use crate::formula::{Formula, Missing, Names, Quantity};
use crate::pairs::Pairs;
use crate::template::Template;
use crate::value::{Value, Values};

/// Settings by name, and the random numbers of a seed.
struct Settings {
    values: Values,
    seed: u64,
    streams: RefCell<BTreeMap<String, Stream>>,
}

impl Settings {
    fn new(values: Values, seed: u64) -> Self {
        Self { values, seed, streams: RefCell::default() }
    }

    fn extend(&mut self, settings: &Pairs<Setting>) -> Result<(), Missing> {
        for (name, setting) in settings.iter() {
            let value = match setting {
                Setting::Value(value) => value.clone(),
                Setting::Template(template) => value(template.quantity(self)?, name)?,
            };
            self.values.set(name, value);
        }
        Ok(())
    }
}

fn value(quantity: Quantity, name: &str) -> Result<Value, Missing> {
    match quantity {
        Quantity::Number(number) => Ok(Value::Float(number)),
        Quantity::Text(text) => Ok(Value::Text(text)),
        Quantity::Truth(truth) => Ok(Value::Bool(truth)),
        Quantity::Sample(_) => Err(Missing::Kind(name.to_owned())),
    }
}

impl Names for Settings {
    fn value(&self, name: &str) -> Result<Quantity, Missing> {
        match name {
            "seed" => Ok(Quantity::Number(self.seed as f64)),
            _ => self.values.get(name).map(Quantity::from).ok_or_else(|| Missing::Name(name.to_owned())),
        }
    }

    /// `draw('stream', bound)`: the next number of the seed's stream of that name, from 0 to below the bound.
    fn call(&self, function: &str, _: Option<&str>, arguments: &[Formula]) -> Result<Quantity, Missing> {
        let ("draw", [name, bound]) = (function, arguments) else { return Err(Missing::Kind(function.to_owned())) };
        let (name, bound) = (name.text(self)?, bound.number(self)?);
        if bound < 1.0 {
            return Ok(Quantity::Number(0.0));
        }
        let mut streams = self.streams.borrow_mut();
        let stream = streams.entry(name).or_insert_with_key(|name| Stream::new(self.seed, name));
        Ok(Quantity::Number(stream.below(bound as u64) as f64))
    }
}

/// A scenario with its keys and further traffic.
struct Recipe<'a> {
    name: &'a str,
    text: String,
    keys: Overrides,
    until_complete: bool,
}

impl Recipe<'_> {
    fn set(&mut self, settings: &Settings, keys: &Pairs<Template>) -> Result<(), Missing> {
        for (key, template) in keys.iter() {
            let value = template.text(settings)?;
            if !value.is_empty() {
                self.keys.set(key, value);
            }
        }
        Ok(())
    }

    fn apply(&mut self, settings: &mut Settings, rule: &Rule) -> Result<(), Missing> {
        if !settings.values.have(&rule.applies) {
            return Ok(());
        }
        settings.extend(&rule.settings)?;
        self.set(settings, &rule.set)?;
        rule.add.iter().try_for_each(|add| self.add(settings, add))
    }

    fn add(&mut self, settings: &mut Settings, add: &Add) -> Result<(), Missing> {
        if !settings.values.have(&add.applies) {
            return Ok(());
        }
        let count = add.count.as_ref().map_or(Ok(1.0), |count| count.number(settings))?;
        for number in 1..=count as i64 {
            settings.values.set(add.by.as_deref().unwrap_or("n"), number);
            settings.extend(&add.settings)?;
            if let Some(text) = &add.text {
                self.text += "\n";
                self.text += &text.text(settings)?;
            }
            add.add.iter().try_for_each(|inner| self.add(settings, inner))?;
        }
        Ok(())
    }
}

/// A row with one seed.
pub(super) struct RowRuns<'a> {
    plan: &'a Plan,
    experiment: &'a Experiment,
    settings: Settings,
    /// Trials of this seed by their scenarios: rows share them.
    trials: &'a RefCell<BTreeMap<String, Rc<Trial>>>,
}

impl<'a> RowRuns<'a> {
    /// A row with these settings, which lie over those of the experiment.
    pub(super) fn new(
        (plan, experiment): (&'a Plan, &'a Experiment),
        (table, row): (&Table, &Values),
        open: &Values,
        seed: u64,
        trials: &'a RefCell<BTreeMap<String, Rc<Trial>>>,
    ) -> Result<Self, Missing> {
        let mut values = open.overlaid(&table.scenario).overlaid(row);
        for (name, inferred) in table.inferred.iter() {
            values.set(format!("inferred.{name}"), inferred.clone());
        }
        values.set("table", table.id.as_str());
        let mut settings = Settings::new(values, seed);
        settings.extend(&experiment.settings)?;
        Ok(Self { plan, experiment, settings, trials })
    }

    /// The figures, in their order.
    pub(super) fn figures(&self) -> Result<Values, Missing> {
        let mut figures = Values::new();
        for (name, formula) in self.experiment.figures.iter().filter(|(name, _)| !name.starts_with('_')) {
            match formula.number(self) {
                Ok(figure) => figures.set(name, figure),
                Err(Missing::Excluded) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(figures)
    }

    /// The scenario of a run.
    pub(super) fn scenario(&self, run: &str) -> Result<Scenario, Missing> {
        let recipe = self.recipe(run)?;
        recipe.keys.scenario(recipe.name, &recipe.text).map_err(Missing::Run)
    }

    fn recipe(&self, run: &str) -> Result<Recipe<'_>, Missing> {
        let known = self.experiment.runs.get(run);
        let mut settings = Settings::new(self.settings.values.clone(), self.settings.seed);
        let name = known.and_then(|run| run.scenario.as_ref()).unwrap_or(&self.experiment.scenario).get_ref();
        let text = scenarios::text(name).unwrap_or_default().to_owned();
        let until_complete = known.is_some_and(|run| run.until_complete);
        let mut recipe = Recipe { name, text, keys: Overrides::default(), until_complete };
        recipe.keys.set("seed", settings.seed);
        known.map_or(Ok(()), |run| settings.extend(&run.settings))?;
        self.plan.rules.iter().try_for_each(|rule| recipe.apply(&mut settings, rule))?;
        known.map_or(Ok(()), |run| recipe.set(&settings, &run.set))?;
        Ok(recipe)
    }

    fn trial(&self, run: &str) -> Result<Rc<Trial>, Missing> {
        let recipe = self.recipe(run)?;
        let Recipe { name, text, keys, until_complete } = &recipe;
        let key = format!("{until_complete} {keys:?} {text}");
        if let Some(known) = self.trials.borrow().get(&key) {
            return Ok(Rc::clone(known));
        }
        let run = if *until_complete { Trial::until_complete } else { Trial::whole };
        let trial = Rc::new(run(name, text, keys).map_err(Missing::Run)?);
        self.trials.borrow_mut().insert(key, Rc::clone(&trial));
        Ok(trial)
    }

    /// Runs it without a figure.
    pub(super) fn run(&self) -> Result<(), Missing> {
        self.trial("main").map(|_| ())
    }
}

impl Names for RowRuns<'_> {
    fn value(&self, name: &str) -> Result<Quantity, Missing> {
        match self.experiment.figures.get(name) {
            Some(formula) => formula.of(self),
            None => self.settings.value(name),
        }
    }

    fn call(&self, function: &str, run: Option<&str>, arguments: &[Formula]) -> Result<Quantity, Missing> {
        if metric::arity(function).is_none() {
            return self.settings.call(function, run, arguments);
        }
        let arguments = arguments.iter().map(|argument| argument.of(self)).collect::<Result<Vec<_>, _>>()?;
        let trial = self.trial(run.unwrap_or("main"))?;
        let measured = metric::measure(&trial, function, &arguments);
        measured.map(Quantity::Number).ok_or_else(|| Missing::Name(function.to_owned()))
    }
}

/// The error of an experiment where a formula has no value.
pub(super) fn failed(missing: Missing) -> ExperimentError {
    match missing {
        Missing::Run(error) => error,
        other => ExperimentError::Formula(other.to_string()),
    }
}
