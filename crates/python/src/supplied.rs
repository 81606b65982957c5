//! Queueing disciplines and congestion controls that are objects of Python.
//!
//! | file | holds |
//! | --- | --- |
//! | `ledger.rs` | the packets that a queue holds: none is lost, none invented |
//! | `object.rs` | objects, and their methods by name |
//! | `packet.rs` | a packet, as a discipline sees it |
//! | `queue.rs` | a discipline |
//! | `control.rs` | a congestion control, and its events |
//! | `failure.rs` | the exception that ends the run |

mod control;
mod failure;
mod ledger;
mod object;
mod packet;
mod queue;

use lastmile_model::Network;
use lastmile_queueing::Spec;
use lastmile_scenario::diagnostics::did_you_mean;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

pub(crate) use control::{Ack, Loss};
pub(crate) use failure::Failure;
pub(crate) use packet::Packet;

/// The queues and congestion controls that Python supplies for a run.
#[derive(Default)]
pub(crate) struct Supplied {
    /// A class or function of no arguments for the name of each link.
    pub(crate) queues: Vec<(String, Py<PyAny>)>,
    /// The like for the name of each traffic.
    pub(crate) congestion: Vec<(String, Py<PyAny>)>,
}

impl Supplied {
    pub(crate) fn new(queues: Option<&Bound<'_, PyDict>>, congestion: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        Ok(Self { queues: pairs("queues", queues)?, congestion: pairs("congestion", congestion)? })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queues.is_empty() && self.congestion.is_empty()
    }

    /// The network with these queues and controls, whose exceptions go to `failure`.
    pub(crate) fn install(&self, py: Python<'_>, network: &mut Network, failure: &Failure) -> PyResult<()> {
        for (name, make) in &self.queues {
            let Some(link) = network.links.iter().position(|link| link.hop.name == *name) else {
                let names = network.links.iter().map(|link| &*link.hop.name);
                return Err(unknown("queues", "link", name, names));
            };
            if network.atm.as_ref().is_some_and(|atm| atm.links.contains(&link)) {
                return Err(PyKeyError::new_err(format!(
                    "queues: the link {name:?} carries cells, and has a queue for each virtual channel"
                )));
            }
            network.links[link].hop.queue = Spec::Supplied(queue::spec(py, make, failure)?);
        }
        for (name, make) in &self.congestion {
            let Some(index) = network.traffic.iter().position(|traffic| traffic.name == *name) else {
                let names = network.traffic.iter().map(|traffic| &*traffic.name);
                return Err(unknown("congestion", "traffic", name, names));
            };
            let (controls, paces) = control::controls(py, make, failure)?;
            if !network.traffic[index].set_control(&controls, paces) {
                return Err(PyKeyError::new_err(format!("congestion: the traffic {name:?} does not send over TCP")));
            }
        }
        Ok(())
    }

    /// The record of it in results, next to changes of keys: `queues.up=python:Fifo`.
    pub(crate) fn record(&self, py: Python<'_>) -> Vec<String> {
        let of = |kind: &str, pairs: &[(String, Py<PyAny>)]| -> Vec<String> {
            let name = |make: &Py<PyAny>| {
                let name = make.bind(py).getattr("__qualname__").and_then(|name| name.extract::<String>());
                name.unwrap_or_else(|_| make.bind(py).get_type().to_string())
            };
            pairs.iter().map(|(key, make)| format!("{kind}.{key}=python:{}", name(make))).collect()
        };
        [of("queues", &self.queues), of("congestion", &self.congestion)].concat()
    }
}

/// Names and what makes their objects.
fn pairs(argument: &str, given: Option<&Bound<'_, PyDict>>) -> PyResult<Vec<(String, Py<PyAny>)>> {
    let pair = |(name, make): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
        let name: String = name.extract()?;
        if !make.is_callable() {
            return Err(failure::contract(
                make.py(),
                &format!("{argument}[{name:?}]: give the class, or a function that makes its object, not the object"),
            ));
        }
        Ok((name, make.unbind()))
    };
    given.into_iter().flat_map(PyDictMethods::iter).map(pair).collect()
}

fn unknown<'a>(argument: &str, kind: &str, name: &str, names: impl Iterator<Item = &'a str> + Clone) -> PyErr {
    let hint = did_you_mean(name, names.clone());
    let hint = hint.unwrap_or_else(|| format!("there are {}", names.collect::<Vec<_>>().join(", ")));
    PyKeyError::new_err(format!("{argument}: no {kind} is called {name:?}: {hint}"))
}
