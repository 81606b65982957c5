//! Several access lines on one DSLAM.

use lastmile_scenario::Scenario;

const THREE: &str = "duration = \"10 s\"\n[access]\nlines = 3\ndown = { rate = \"8 Mbit/s\" }\nup = { rate = \"512 \
                     kbit/s\" }\n\
                     aggregation = { rate = \"10 Mbit/s\" }\n";

fn parse(traffic: &str) -> Result<Scenario, String> {
    Scenario::parse("x.toml", &format!("{THREE}{traffic}"), &[]).map_err(|report| report.to_string())
}

#[test]
fn lines_share_the_dslam_and_what_is_behind_it() {
    let scenario = parse("[[traffic]]\nkind = \"bulk\"\ndirection = \"down\"\n").unwrap();
    let network = scenario.network();
    let nodes: Vec<&str> = network.nodes.iter().map(|node| node.name.as_str()).collect();
    let expected = ["client-1", "cpe-1", "client-2", "cpe-2", "client-3", "cpe-3", "dslam", "gateway", "server"];
    assert_eq!(nodes, expected);
    assert_eq!(network.links.len(), 4 + 3 * 4);
    for (number, line) in network.lines.iter().enumerate() {
        let (down, up) = (&network.links[line.down], &network.links[line.up]);
        assert_eq!(
            (down.hop.name.clone(), up.hop.name.clone()),
            (format!("down-{}", number + 1), format!("up-{}", number + 1))
        );
        assert_eq!((nodes[down.from], nodes[down.to]), ("dslam", nodes[2 * number + 1]));
        assert_eq!((up.from, up.to), (down.to, down.from));
    }
    // On each line; every way leads over the one uplink.
    let names: Vec<&str> = network.traffic.iter().map(|traffic| traffic.name.as_str()).collect();
    assert_eq!(names, ["bulk-line-1", "bulk-line-2", "bulk-line-3"]);
    for traffic in 0..3 {
        let (there, back) = scenario.ways(traffic);
        let named =
            |links: Vec<usize>| links.iter().map(|link| network.links[*link].hop.name.clone()).collect::<Vec<_>>();
        let n = traffic + 1;
        let down =
            ["server-gateway".to_owned(), "gateway-dslam".into(), format!("down-{n}"), format!("cpe-client-{n}")];
        assert_eq!(named(there.unwrap()), down);
        assert_eq!(named(back.unwrap())[2..], ["dslam-gateway", "gateway-server"]);
    }
    let access = scenario.access().unwrap();
    assert_eq!((network.links[access.down_link].hop.name.as_str(), access.client), ("down-1", 0));
    assert_eq!(network.links[access.up_link].hop.name, "up-1");
}

#[test]
fn traffic_may_name_its_line_and_nodes_of_lines_have_names() {
    let scenario = parse(
        "[[traffic]]\nkind = \"swarm\"\nline = 2\n[[traffic]]\nkind = \"ping\"\nfrom = \"client-3\"\nto = \"server\"\n\
         [[traffic]]\nkind = \"voice\"\nname = \"call\"\ndirection = \"up\"\ncount = 2\n",
    );
    let network = scenario.unwrap().network();
    let told: Vec<(&str, usize, usize)> =
        network.traffic.iter().map(|traffic| (traffic.name.as_str(), traffic.from, traffic.to)).collect();
    let expected = [
        ("swarm-down", 8, 2),
        ("swarm-up", 2, 8),
        ("ping", 4, 8),
        ("call-line-1", 0, 8),
        ("call-line-2", 2, 8),
        ("call-line-3", 4, 8),
    ];
    assert_eq!(told, expected);
    assert!(network.traffic[3].count == 2);
}

#[test]
fn a_line_that_is_not_there_is_told() {
    let refused = |traffic: &str, wanted: &str| {
        let report = parse(traffic).unwrap_err();
        assert!(report.contains(wanted), "{traffic}: {report}");
    };
    refused("[[traffic]]\nkind = \"ping\"\nline = 4\n", "there is no line 4");
    refused(
        "[[traffic]]\nkind = \"ping\"\nline = 1\nfrom = \"client-1\"\nto = \"server\"\n",
        "line together with from and to",
    );
    refused("[[traffic]]\nkind = \"ping\"\nfrom = \"client\"\nto = \"server\"\n", "no node is called \"client\"");
}

/// One line alone is as it always was.
#[test]
fn one_line_has_no_numbers() {
    let one = Scenario::parse("x.toml", &THREE.replace("lines = 3", "lines = 1"), &[]).unwrap().network();
    let none = Scenario::parse("x.toml", &THREE.replace("lines = 3\n", ""), &[]).unwrap().network();
    let links = |network: &lastmile_model::Network| {
        network.links.iter().map(|link| (link.hop.name.clone(), link.from, link.to)).collect::<Vec<_>>()
    };
    assert_eq!(links(&one), links(&none));
    assert_eq!(one.links[one.lines[0].down].hop.name, "down");
}
