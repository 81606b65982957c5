//! The runs of a row with one seed: their scenarios by the rules, and the figures measured in them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use lastmile_queueing::random::Stream;
use lastmile_scenario::Scenario;

use super::{Add, Experiment, Plan, Rule, Setting, Variant};
use crate::data::{TCP_OF, TODAY, Table};
use crate::error::ExperimentError;
use crate::experiments::seeds::SEEDS;
use crate::experiments::trial::{Overrides, Trial};
use crate::experiments::{metric, scenarios};
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

pub(super) fn value(quantity: Quantity, name: &str) -> Result<Value, Missing> {
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

/// The keys that the rules for these settings set.
pub(super) fn keys(rules: &[Rule], settings: Values) -> Result<Vec<(String, String)>, Missing> {
    let mut settings = Settings::new(settings, SEEDS[0]);
    let mut keys = Vec::new();
    for rule in rules {
        if settings.values.have(&rule.applies) {
            settings.extend(&rule.settings)?;
            for (key, template) in rule.set.iter() {
                keys.push((key.to_owned(), template.text(&settings)?));
            }
        }
    }
    Ok(keys)
}

/// Texts without figures or settings.
pub(super) fn texts(templates: &[Template]) -> Result<Vec<String>, Missing> {
    let settings = Settings::new(Values::new(), SEEDS[0]);
    templates.iter().map(|template| template.text(&settings)).collect()
}

/// A row with one seed.
pub(super) struct RowRuns<'a> {
    plan: &'a Plan,
    experiment: &'a Experiment,
    settings: Settings,
    /// Trials of this seed by their scenarios: rows share them.
    trials: &'a Trials,
    /// Keys that every run sets otherwise.
    variant: Option<&'a Variant>,
    /// The run that a figure needed first.
    used: RefCell<Option<String>>,
}

/// Trials of a seed by their scenarios.
pub(super) type Trials = RefCell<BTreeMap<String, Rc<Trial>>>;

/// A row with all its seeds.
pub(super) struct Pooled<'a>(pub(super) Vec<RowRuns<'a>>);

impl<'a> RowRuns<'a> {
    /// A row with these settings, which lie over those of the experiment.
    pub(super) fn new(
        (plan, experiment): (&'a Plan, &'a Experiment),
        (table, row): (&Table, &Values),
        open: &Values,
        seed: u64,
        trials: &'a Trials,
    ) -> Result<Self, Missing> {
        let mut values = open.overlaid(&table.scenario).overlaid(row);
        for (name, inferred) in table.inferred.iter() {
            values.set(format!("inferred.{name}"), inferred.clone());
        }
        values.set("table", table.id.as_str());
        let mut settings = Settings::new(values, seed);
        settings.extend(&experiment.settings)?;
        Ok(Self { plan, experiment, settings, trials, variant: None, used: RefCell::default() })
    }

    /// These runs with other keys.
    pub(super) fn with(self, variant: &'a Variant) -> Self {
        Self { variant: Some(variant), ..self }
    }

    /// These runs with settings over all others but those of a single run.
    pub(super) fn over(mut self, settings: &Values) -> Self {
        self.settings.values = self.settings.values.overlaid(settings);
        self
    }

    /// The figures, in their order.
    pub(super) fn figures(&self) -> Result<Values, Missing> {
        numbers(self, self.experiment.figures.iter().filter(|(name, _)| !name.starts_with('_')))
    }

    /// The figures that are not reported.
    pub(super) fn hidden(&self) -> Result<Values, Missing> {
        numbers(self, self.experiment.hidden.iter())
    }

    /// The scenario of a run.
    pub(super) fn scenario(&self, run: &str) -> Result<Scenario, Missing> {
        let recipe = self.recipe(run)?;
        recipe.keys.scenario(recipe.name, &recipe.text).map_err(Missing::Run)
    }

    /// Name, text and overrides of the scenario of the run that a figure needed first.
    pub(super) fn source(&self) -> Result<(String, String, Vec<String>), Missing> {
        let used = self.used.borrow();
        let recipe = self.recipe(used.as_deref().unwrap_or("main"))?;
        Ok((recipe.name.to_owned(), recipe.text, recipe.keys.into_pairs()))
    }

    fn recipe(&self, run: &str) -> Result<Recipe<'_>, Missing> {
        let known = self.experiment.runs.get(run);
        let mut settings = Settings::new(self.settings.values.clone(), self.settings.seed);
        let name = known.and_then(|run| run.scenario.as_ref()).unwrap_or(&self.experiment.scenario).get_ref();
        let text = scenarios::text(name).unwrap_or_default().to_owned();
        let until_complete = known.is_some_and(|run| run.until_complete);
        let mut recipe = Recipe { name, text, keys: Overrides::default(), until_complete };
        recipe.keys.set("seed", settings.seed);
        if settings.values.text(TCP_OF) == Some(TODAY) {
            recipe.keys.set("tcp", "{ era = \"today\" }");
        }
        known.map_or(Ok(()), |run| settings.extend(&run.settings))?;
        self.plan.rules.iter().try_for_each(|rule| recipe.apply(&mut settings, rule))?;
        known.map_or(Ok(()), |run| recipe.set(&settings, &run.set))?;
        self.variant.map_or(Ok(()), |variant| recipe.set(&settings, &variant.set))?;
        Ok(recipe)
    }

    fn trial(&self, run: &str) -> Result<Rc<Trial>, Missing> {
        self.used.borrow_mut().get_or_insert_with(|| run.to_owned());
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
        match self.experiment.figures.get(name).or_else(|| self.experiment.hidden.get(name)) {
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
        let measured = metric::measure(&[trial], function, &arguments);
        measured.map(Quantity::Number).ok_or_else(|| Missing::Name(function.to_owned()))
    }
}

impl Pooled<'_> {
    /// The figures of all seeds together, in their order.
    pub(super) fn figures(&self) -> Result<Values, Missing> {
        self.0.first().map_or_else(|| Ok(Values::new()), |row| numbers(self, row.experiment.pooled.iter()))
    }
}

impl Names for Pooled<'_> {
    /// A setting, a figure of all seeds together, or the mean of a figure of each.
    fn value(&self, name: &str) -> Result<Quantity, Missing> {
        let first = self.0.first().ok_or(Missing::Excluded)?;
        if let Some(formula) = first.experiment.pooled.get(name) {
            return formula.of(self);
        }
        match first.value(name)? {
            Quantity::Number(_) => {
                let numbers = self.0.iter().map(|row| Formula::Name(name.to_owned()).number(row));
                let numbers = numbers.collect::<Result<Vec<f64>, _>>()?;
                Ok(Quantity::Number(numbers.iter().sum::<f64>() / numbers.len() as f64))
            }
            other => Ok(other),
        }
    }

    fn call(&self, function: &str, run: Option<&str>, arguments: &[Formula]) -> Result<Quantity, Missing> {
        let first = self.0.first().ok_or(Missing::Excluded)?;
        if metric::arity(function).is_none() {
            return first.call(function, run, arguments);
        }
        let arguments = arguments.iter().map(|argument| argument.of(self)).collect::<Result<Vec<_>, _>>()?;
        let trials = self.0.iter().map(|row| row.trial(run.unwrap_or("main"))).collect::<Result<Vec<_>, _>>()?;
        let measured = metric::measure(&trials, function, &arguments);
        measured.map(Quantity::Number).ok_or_else(|| Missing::Name(function.to_owned()))
    }
}

/// The numbers that formulas give, without those that their conditions exclude.
pub(super) fn numbers<'a>(
    names: &dyn Names,
    formulas: impl Iterator<Item = (&'a str, &'a Formula)>,
) -> Result<Values, Missing> {
    let mut values = Values::new();
    for (name, formula) in formulas {
        match formula.number(names) {
            Ok(value) => values.set(name, value),
            Err(Missing::Excluded) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(values)
}

/// The error of an experiment where a formula has no value.
pub(super) fn failed(missing: Missing) -> ExperimentError {
    match missing {
        Missing::Run(error) => error,
        other => ExperimentError::Formula(other.to_string()),
    }
}
