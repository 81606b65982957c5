//! `lastmile measure --serve`.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use lastmile_live::http::{self, Pages};
use lastmile_live::shape::notify::Manager;
use lastmile_live::stop::Stop;
use lastmile_measure::serve::{Counted, Counters, Limits, Server, anywhere};
use lastmile_text::table::{Kind, Table};
use lastmile_units::BitRate;

use crate::failure::{Exit, Result};
use crate::printer::Printer;

use super::{key, options};

// `requires` alone refuses nothing next to a HOST: clap asks for no argument that conflicts with one that is there.
#[derive(Args)]
pub(super) struct Serving {
    /// Serve the other end of measurements until Ctrl-C or SIGTERM, for clients with the key
    #[arg(long, conflicts_with_all = ["json", "flent", "page"])]
    serve: bool,

    /// Address to listen at, TCP and UDP [default: all addresses]
    #[arg(long, value_name = "ADDRESS", requires = "serve", conflicts_with = "host")]
    listen: Option<IpAddr>,

    /// Largest rate of a client, in each direction [default: 1 Gbit/s]
    #[arg(long, value_name = "RATE", requires = "serve", conflicts_with = "host")]
    limit_rate: Option<BitRate>,

    /// Longest load; a longer one ends by itself [default: 60 s]
    #[arg(long, value_name = "TIME", requires = "serve", conflicts_with = "host", value_parser = options::time)]
    limit_time: Option<Duration>,

    /// Clients at a time [default: 4]
    #[arg(
        long,
        value_name = "N",
        requires = "serve",
        conflicts_with = "host",
        value_parser = clap::value_parser!(u32).range(1..=1000)
    )]
    limit_clients: Option<u32>,

    /// Serve counters for Prometheus at http://ADDRESS/metrics, such as 127.0.0.1:9101
    #[arg(long, value_name = "ADDRESS", requires = "serve", conflicts_with = "host")]
    metrics: Option<SocketAddr>,
}

impl Serving {
    fn limits(&self) -> Limits {
        let usual = Limits::default();
        Limits {
            sessions: self.limit_clients.unwrap_or(usual.sessions),
            rate: self.limit_rate.unwrap_or(usual.rate),
            load: self.limit_time.unwrap_or(usual.load),
            ..usual
        }
    }
}

pub(super) fn run(arguments: &Serving, port: Option<u16>, key: &key::Secret, printer: &mut Printer) -> Result {
    let limits = arguments.limits();
    let anywhere = anywhere(port);
    let address = SocketAddr::new(arguments.listen.unwrap_or_else(|| anywhere.ip()), anywhere.port());
    let key = key.read()?;
    let stop = Stop::on_signals()?;
    let server = Server::bind(address, key, limits)?;
    let metrics = arguments.metrics.map(http::Server::bind).transpose()?;
    let (address, counters) = (server.address()?, server.counters());
    let status = format!(
        "serving at {address}, TCP and UDP: at most {} clients, {} each way, {} s a load",
        limits.sessions,
        limits.rate,
        limits.load.as_secs()
    );
    printer.talk(&status);
    let manager = Manager::of_this_program();
    manager.iter().for_each(|manager| manager.ready(&status));
    let end = Stop::new()?;
    let ending = end.handle()?;
    let served = std::thread::scope(|scope| {
        if let Some(metrics) = metrics {
            let (end, pages) = (&end, Metrics(Arc::clone(&counters)));
            // Clients are served without metrics, too.
            scope.spawn(move || drop(metrics.serve(end, &pages)));
        }
        let served = server.serve(&stop);
        ending.stop();
        served
    });
    manager.iter().for_each(Manager::stopping);
    served?;
    printer.table(&table(&counters))?;
    Ok(Exit::Done)
}

fn table(counters: &Counters) -> Table {
    let mut table = Table::new([("counted", Kind::Name), ("number", Kind::Number)]);
    for (event, _, meaning) in Counted::ALL {
        table.row([meaning.to_owned(), counters.get(event).to_string()]);
    }
    table
}

/// The page for scrapers.
#[derive(Clone)]
struct Metrics(Arc<Counters>);

impl Pages for Metrics {
    const CONTENT_TYPE: &'static str = "text/plain; version=0.0.4; charset=utf-8";

    async fn page(&self) -> std::result::Result<String, String> {
        Ok(self.0.exposition())
    }
}
