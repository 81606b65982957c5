//! Brouer 2005, chapter 5 and section 6.1.2: what encapsulations cost, and what a rate table makes of it.

use lastmile_linklayer::{LinkLayer, aal5, ethernet};
use lastmile_units::ByteCount;

use crate::data::Table;
use crate::reproduction::TableResult;
use crate::value::{Value, Values};

use super::formulas::formulas;
use super::whole;
use crate::error::ExperimentError;

const ACK: ByteCount = ByteCount::new(40);

/// The twelve encapsulations of table 5.3.
const TWELVE: [&str; 12] = [
    "pppoa-vcmux",
    "pppoa-llc",
    "ipoa-vcmux",
    "ipoa-llcsnap",
    "bridged-vcmux",
    "bridged-llcsnap",
    "bridged-vcmux-fcs",
    "bridged-llcsnap-fcs",
    "pppoe-vcmux",
    "pppoe-llcsnap",
    "pppoe-vcmux-fcs",
    "pppoe-llcsnap-fcs",
];

fn preset(name: &str) -> Result<LinkLayer, ExperimentError> {
    LinkLayer::from_name(name).ok_or(ExperimentError::MissingSetting("link_layer"))
}

fn cells(link: LinkLayer, ip: ByteCount) -> u64 {
    link.cells(ip).map_or(0, lastmile_units::CellCount::as_u64)
}

/// Table 5.3.
pub(super) fn encapsulations(table: &Table) -> Result<TableResult, ExperimentError> {
    formulas(table, encapsulation, |_| {
        let in_cells = |count: u64| -> Vec<&str> {
            TWELVE.into_iter().filter(|name| preset(name).is_ok_and(|link| cells(link, ACK) == count)).collect()
        };
        let (one, two) = (in_cells(1), in_cells(2));
        let evidence =
            format!("an ACK of 40 bytes takes one cell with {}, two with {} others", one.join(", "), two.len());
        (one == ["ipoa-vcmux"] && two.len() == 11, evidence)
    })
}

/// The preset that a row of table 5.3 is about.
pub(super) fn name_of(settings: &Values) -> Result<String, ExperimentError> {
    let text = |name| settings.text(name).ok_or(ExperimentError::MissingSetting(name));
    let (name, kind, mux) = (text("name")?, text("type")?, text("mux")?);
    let multiplexed = mux == "vc";
    let fcs = if kind.contains("with FCS") { "-fcs" } else { "" };
    let mux = if multiplexed { "vcmux" } else { "llcsnap" };
    Ok(match name {
        "PPPoA" => format!("pppoa-{}", if multiplexed { "vcmux" } else { "llc" }),
        "RFC2684R" => format!("ipoa-{mux}"),
        "RFC2684B" => format!("bridged-{mux}{fcs}"),
        _ => format!("pppoe-{mux}{fcs}"),
    })
}

fn encapsulation(settings: &Values) -> Result<Values, ExperimentError> {
    let link = preset(&name_of(settings)?)?;
    let overhead = f64::from(link.overhead());
    let large = ByteCount::new(1500);
    let mut values = Values::new();
    values.set("aal5_tail_overhead_bytes", overhead);
    values.set("tcp_ip_40_bytes_total", 40.0 + overhead);
    values.set("ack_pdu_bytes", 40.0 + overhead);
    values.set("ack_pdu_bytes_with_mac_padding", link.frame(ACK) as f64);
    values.set("ack_cells", cells(link, ACK) as f64);
    values.set("ack_wire_bytes", link.on_wire(ACK).as_u64() as f64);
    values.set("ip1500_cells", cells(link, large) as f64);
    values.set("ip1500_wire_bytes", link.on_wire(large).as_u64() as f64);
    Ok(values)
}

/// Sections 5.1 and 5.3.
pub(super) fn elements(table: &Table) -> Result<TableResult, ExperimentError> {
    formulas(table, element, |_| {
        let overheads: Vec<i32> = TWELVE.iter().filter_map(|name| Some(preset(name).ok()?.overhead())).collect();
        let (least, most) = (overheads.iter().min().copied(), overheads.iter().max().copied());
        let wire = LinkLayer::from_name("bridged-vcmux-fcs").map_or(0, |link| link.on_wire(ACK).as_u64());
        let share = 100.0 * (wire as f64 - 40.0) / wire as f64;
        let evidence = format!(
            "{} to {} bytes a packet; an ACK takes {wire} bytes, {share:.1} % of it overhead",
            least.unwrap_or_default(),
            most.unwrap_or_default()
        );
        ((least, most) == (Some(8), Some(44)) && wire == 106 && (share - 62.0).abs() < 0.5, evidence)
    })
}

fn element(settings: &Values) -> Result<Values, ExperimentError> {
    let of = |name: &str| -> Result<i64, ExperimentError> { Ok(preset(name)?.overhead().into()) };
    let trailer = i64::from(aal5::TRAILER);
    let mac = i64::from(ethernet::MAC_HEADER);
    let ppp = of("pppoa-vcmux")? - trailer;
    // RFC 2364 over LLC has three bytes of LLC, one of NLPID and PPP; RFC 2684 three of LLC and five of SNAP.
    let llc = of("pppoa-llc")? - trailer - ppp - 1;
    let both = |without: &str, with: &str| -> Result<Value, ExperimentError> {
        Ok(Value::List(vec![Value::Integer(of(without)?), Value::Integer(of(with)?)]))
    };
    let mut values = Values::new();
    let bytes: Value = match settings.text("item").unwrap_or_default() {
        "cell header share" => {
            values.set("pct", 100.0 * (aal5::CELL_BYTES - aal5::CELL_PAYLOAD) as f64 / aal5::CELL_BYTES as f64);
            return Ok(values);
        }
        "LLC header" => llc.into(),
        "PPP protocol id" => ppp.into(),
        "SNAP (OUI 3 + PID 2)" => (of("ipoa-llcsnap")? - trailer - llc).into(),
        "bridged: VC pad" => (of("bridged-vcmux")? - trailer - mac).into(),
        "bridged: LLC + SNAP + pad" => (of("bridged-llcsnap")? - trailer - mac).into(),
        "bridged: MAC without / with FCS" => {
            Value::List([mac, mac + i64::from(ethernet::FCS)].map(Value::Integer).to_vec())
        }
        "bridged total LLC without / with FCS" => both("bridged-llcsnap", "bridged-llcsnap-fcs")?,
        "bridged total VC without / with FCS" => both("bridged-vcmux", "bridged-vcmux-fcs")?,
        "minimum Ethernet frame with FCS" => {
            let link = preset("bridged-llcsnap-fcs")?;
            let frame = link.frame(ACK) as f64;
            values.set("ack_padding_bytes", frame - 40.0 - f64::from(link.overhead()));
            values.set("ack_total_bytes", frame);
            values.set("ack_overhead_bytes", frame - 40.0);
            i64::from(ethernet::MIN_FRAME).into()
        }
        "PPPoE header" => (of("pppoe-vcmux")? - of("bridged-vcmux")? - ppp).into(),
        "PPPoE LLC with FCS total" => {
            let total = of("pppoe-llcsnap-fcs")?;
            values.set("left_in_first_cell_bytes", aal5::CELL_PAYLOAD as f64 - total as f64);
            total.into()
        }
        "ACK of 40 bytes in two cells" => {
            let wire = preset("bridged-vcmux-fcs")?.on_wire(ACK).as_u64() as f64;
            values.set("wire_bytes", wire);
            values.set("overhead_bytes", wire - 40.0);
            values.set("overhead_share_of_wire_pct", 100.0 * (wire - 40.0) / wire);
            return Ok(values);
        }
        "physical-layer OAM cells" => {
            // ITU-T I.432.
            values.set("one_in", 27.0);
            return Ok(values);
        }
        _ => return Ok(values),
    };
    values.set("bytes", bytes);
    Ok(values)
}

/// Section 6.1.2: a table of the kernel as it was.
pub(super) fn lower_boundary(table: &Table) -> Result<TableResult, ExperimentError> {
    formulas(
        table,
        |settings| charged(settings, 0),
        |rows| {
            let wrong: Vec<String> = rows
                .iter()
                .filter(|row| row.theory.number("atm_bytes") < row.theory.number("true_atm_bytes_of_last"))
                .map(|row| format!("{} to {}", text(&row.params, "first"), text(&row.params, "last")))
                .collect();
            (
                wrong == ["0 to 7", "48 to 55"],
                format!("charged a cell too few, the last of them at least: {} bytes", wrong.join(", ")),
            )
        },
    )
}

/// Section 6.1.2: the table as corrected.
pub(super) fn upper_boundary(table: &Table) -> Result<TableResult, ExperimentError> {
    formulas(
        table,
        |settings| charged(settings, 1),
        |_| {
            // Every size of every interval of the whole table.
            let wrong =
                (1..=16 * 256_u64).filter(|size| aal5::cells(*size) != aal5::cells(((size - 1) / 16 + 1) * 16)).count();
            (wrong == 0, format!("of 4096 sizes {wrong} are charged other cells than they take"))
        },
    )
}

/// The entry of a row, charged by the lower boundary of its interval (0) or by the upper (1).
fn charged(settings: &Values, boundary: u64) -> Result<Values, ExperimentError> {
    let mut values = Values::new();
    let Ok(entry) = whole(settings, "entry") else {
        let multiples = TWELVE.iter().filter(|name| preset(name).is_ok_and(|link| link.overhead() % 8 == 0)).count();
        values.set("count", multiples as f64);
        return Ok(values);
    };
    let charged = (entry + boundary) * whole(settings, "interval_bytes")?;
    values.set("charged_bytes", charged as f64);
    values.set("cells", aal5::cells(charged) as f64);
    values.set("atm_bytes", (aal5::cells(charged) * aal5::CELL_BYTES) as f64);
    values.set("true_atm_bytes_of_last", (aal5::cells(whole(settings, "last")?) * aal5::CELL_BYTES) as f64);
    Ok(values)
}

fn text(values: &Values, name: &str) -> String {
    values.get(name).map(ToString::to_string).unwrap_or_default()
}
