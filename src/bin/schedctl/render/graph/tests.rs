//! Drawings of small graphs; the expected texts are those of each form's own documentation.

use serde_json::{Value, json};

use sched::model::graph::GraphView;

use super::super::tests::output;
use super::layout::{Arrow, lay_out};
use super::*;
use crate::cli::Format;

/// Nodes by id and name; edges by ends, with what is special about them.
fn view(nodes: &[(&str, Option<&str>)], edges: &[(&str, &str, Value)]) -> GraphView {
    let node = |(id, name): &(&str, Option<&str>)| {
        json!({"id": id, "taskId": id, "name": name, "owner": "o", "status": "ACTIVE",
               "schedule": "", "instance": null})
    };
    let edge = |(from, to, over): &(&str, &str, Value)| {
        let mut edge = json!({"from": from, "to": to, "kind": "DEPENDENCY", "depType": "SUCCESS",
                              "strength": "STRONG", "when": null, "cycleOffset": 0, "states": []});
        for (key, entry) in over.as_object().unwrap() {
            edge[key] = entry.clone();
        }
        edge
    };
    let nodes: Vec<Value> = nodes.iter().map(node).collect();
    let edges: Vec<Value> = edges.iter().map(edge).collect();
    let view = json!({"cycle": null, "nodes": nodes, "edges": edges, "truncated": false});
    serde_json::from_value(view).unwrap()
}

/// A fan-in below a fan-out: b and c after a, d after both.
fn diamond() -> GraphView {
    let plain = || json!({});
    view(
        &[("a.v1", None), ("b.v1", None), ("c.v1", None), ("d.v1", None), ("e.v1", None)],
        &[
            ("a.v1", "b.v1", plain()),
            ("a.v1", "c.v1", json!({"strength": "WEAK", "depType": "DATA_READY"})),
            ("b.v1", "d.v1", plain()),
            ("c.v1", "d.v1", plain()),
            ("d.v1", "e.v1", json!({"when": "output.n > 1", "cycleOffset": -1})),
        ],
    )
}

#[test]
fn a_tree_shows_what_is_shared_once_and_refers_to_it() {
    let expected = "\
a.v1
├─ b.v1
│  └─ d.v1
│     └─ [cycle -1, when output.n > 1] e.v1
└─ [WEAK, DATA_READY] c.v1
   └─ d.v1 (its own are shown above)";
    assert_eq!(tree(&diamond(), &output(Format::Table)), expected);
}

#[test]
fn a_tree_colours_states_where_colour_is_wanted() {
    let mut view = diamond();
    let instance = json!({"instanceId": "01a", "cycle": "2026-11-30", "state": "FAILED",
                          "reason": null, "errorCode": "EXIT_1"});
    view.nodes[0].instance = Some(serde_json::from_value(instance).unwrap());
    let mut colored = output(Format::Table);
    colored.color = true;
    let first = tree(&view, &colored);
    let first = first.lines().next().unwrap();
    assert_eq!(first, "a.v1 01a\u{1b}[31m  FAILED EXIT_1, cycle 2026-11-30\u{1b}[0m");
}

#[test]
fn a_chain_of_ten_thousand_is_drawn_without_a_deep_stack() {
    let ids: Vec<String> = (0..10_000).map(|n| format!("t{n}.v1")).collect();
    let nodes: Vec<(&str, Option<&str>)> = ids.iter().map(|id| (id.as_str(), None)).collect();
    let edges: Vec<(&str, &str, Value)> =
        ids.windows(2).map(|pair| (pair[0].as_str(), pair[1].as_str(), json!({}))).collect();
    let text = tree(&view(&nodes, &edges), &output(Format::Table));
    assert_eq!(text.lines().count(), 10_000);
}

/// All that the forms have a meaning for.
const ODD: &str = "end \"<&>'\\N`[](){}|#;*_~\u{7}\u{fffe}";

fn odd() -> GraphView {
    let mut view =
        view(&[("a.v1", Some(ODD)), ("b.v1", None)], &[("a.v1", "b.v1", json!({"when": ODD}))]);
    view.nodes[0].owner = Some(ODD.to_owned());
    view
}

#[test]
fn dot_takes_no_quote_escape_or_entity_from_a_name() {
    let text = dot(&odd());
    let label = r#"label="a.v1 (end \"<&amp;>'\\N`[](){}|#;*_~\\u{7}"#;
    assert!(text.contains(label), "{text}");
    assert!(text.starts_with("digraph schedd {\n") && text.ends_with("}\n"));
    // Quotes that are not escaped come in pairs on every line.
    for line in text.lines() {
        let open = line.replace("\\\\", "").replace("\\\"", "").matches('"').count();
        assert_eq!(open % 2, 0, "{line}");
    }
}

#[test]
fn mermaid_gets_its_own_entities() {
    let text = mermaid(&odd());
    assert!(text.starts_with("flowchart LR\n"), "{text}");
    let name = "n0[\"a.v1 #40;end #34;#60;#38;#62;'#92;N#96;#91;#93;#40;#41;#123;#125;#124;#35;#59;\
                #42;#95;#126;#92;u#123;7#125;";
    assert!(text.contains(name), "{text}");
    assert!(text.contains("n0 -->|\"when end #34;"), "{text}");
}

#[test]
fn weak_edges_and_triggers_look_different_in_every_form() {
    let trigger =
        json!({"kind": "TRIGGER", "depType": null, "strength": null, "states": ["FAILED"]});
    let view = view(
        &[("a.v1", None), ("b.v1", None), ("c.v1", None)],
        &[("a.v1", "b.v1", json!({"strength": "WEAK"})), ("a.v1", "c.v1", trigger)],
    );
    let text = dot(&view);
    assert!(text.contains("\"a.v1\" -> \"b.v1\" [style=dashed, label=\"WEAK\"]"), "{text}");
    assert!(text.contains("\"a.v1\" -> \"c.v1\" [style=dotted, label=\"on FAILED\"]"), "{text}");
    let text = mermaid(&view);
    assert!(text.contains("n0 -.->|\"WEAK\"| n1\n  n0 ==>|\"on FAILED\"| n2"), "{text}");
    let text = svg(&view);
    assert_eq!(text.matches("stroke-dasharray").count(), 2, "{text}");
}

/// Elements opened and closed as XML wants them; all text escaped.
fn is_well_formed(text: &str) {
    let mut open = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find('<') {
        let between = &rest[..start];
        assert!(!between.contains('>'), "{between}");
        for (at, _) in between.match_indices('&') {
            let entity = &between[at..];
            let known = ["&amp;", "&lt;", "&gt;", "&quot;", "&#39;"];
            assert!(known.iter().any(|e| entity.starts_with(e)), "{entity}");
        }
        let end = start + rest[start..].find('>').expect("a tag ends");
        let tag = &rest[start + 1..end];
        assert!(!tag.contains('<'), "{tag}");
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "{tag}");
        } else if !tag.ends_with('/') {
            open.push(tag.split(' ').next().unwrap());
        }
        rest = &rest[end + 1..];
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn a_picture_is_well_formed_whatever_a_name_holds() {
    let text = svg(&odd());
    is_well_formed(&text);
    assert!(text.starts_with("<svg xmlns="), "{text}");
    assert!(text.contains("&quot;&lt;&amp;&gt;&#39;"), "{text}");
    assert!(!text.contains('\u{7}') && !text.contains('\u{fffe}'));
    is_well_formed(&svg(&diamond()));
    is_well_formed(&svg(&view(&[], &[])));
}

#[test]
fn boxes_stand_in_columns_from_left_to_right_and_never_on_one_another() {
    let arrow = |from, to| Arrow { from, to, label: 0 };
    let arrows = [arrow(0, 1), arrow(0, 2), arrow(1, 3), arrow(2, 3), arrow(0, 3)];
    let layout = lay_out(&[10, 30, 4, 10, 12], &arrows);
    let place = |at: usize| layout.places[at];
    for arrow in arrows {
        assert!(place(arrow.from).column_right < place(arrow.to).left, "{arrow:?}");
    }
    for (a, one) in layout.places.iter().enumerate() {
        for other in &layout.places[a + 1..] {
            let apart = one.right <= other.left || other.right <= one.left;
            assert!(one.line.abs_diff(other.line) >= 3 || apart, "{one:?} {other:?}");
        }
    }
    assert!(!layout.ways[4].is_empty(), "it goes past the middle column");
}

#[test]
fn arrows_that_lead_nowhere_back_or_twice_do_no_harm() {
    let arrow = |from, to| Arrow { from, to, label: 3 };
    let odd = [arrow(0, 0), arrow(0, 9), arrow(0, 1), arrow(0, 1), arrow(1, 0), arrow(1, 2)];
    let layout = lay_out(&[0, 1, 500], &odd);
    assert_eq!((layout.places.len(), layout.ways.len()), (3, 6));
}

/// Numbers that look drawn by lot and are always the same.
fn next(seed: &mut u64) -> usize {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    usize::try_from(*seed >> 33).unwrap()
}

#[test]
fn a_thousand_boxes_of_any_shape_are_laid_out() {
    let mut seed = 1;
    let chain: Vec<(usize, usize)> = (1..1000).map(|n| (n - 1, n)).collect();
    let fan: Vec<(usize, usize)> = (1..1000).map(|n| (0, n)).collect();
    let gather: Vec<(usize, usize)> = (0..999).map(|n| (n, 999)).collect();
    let random: Vec<(usize, usize)> =
        (1..1000).flat_map(|n| [(next(&mut seed) % n, n), (next(&mut seed) % n, n)]).collect();
    for pairs in [chain, fan, gather, random, Vec::new()] {
        let arrows: Vec<Arrow> =
            pairs.iter().map(|(from, to)| Arrow { from: *from, to: *to, label: 0 }).collect();
        let layout = lay_out(&[20; 1000], &arrows);
        for arrow in &arrows {
            let (from, to) = (layout.places[arrow.from], layout.places[arrow.to]);
            assert!(from.column_right < to.left, "{arrow:?}");
        }
    }
}
