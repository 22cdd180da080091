//! Values of the options for NUMA nodes: processors and memory.

use ugeom_machine::memory_policy::MemoryPolicy;

use crate::value;

/// `numa_cpu_nodes=`: the processors of these nodes.
pub fn node_cores(text: &str) -> Result<Vec<usize>, String> {
    let mut cores = Vec::new();
    for node in value::cores(text)? {
        let path = format!("/sys/devices/system/node/node{node}/cpulist");
        let list = std::fs::read_to_string(&path)
            .map_err(|error| format!("there is no node {node}: {path}: {error}"))?;
        if !list.trim().is_empty() {
            cores.extend(value::cores(list.trim())?);
        }
    }
    cores.sort_unstable();
    cores.dedup();
    match cores.is_empty() {
        false => Ok(cores),
        true => Err(format!("the nodes {text} have no processors")),
    }
}

/// `numa_mem_policy=`, in fio's forms; `None` is the policy of the program.
pub fn memory_policy(text: &str) -> Result<Option<MemoryPolicy>, String> {
    let (name, nodes) = match text.split_once(':') {
        Some((name, nodes)) => (name, Some(nodes)),
        None => (text, None),
    };
    let policy = match (name, nodes) {
        ("default", None) => return Ok(None),
        ("local", None) => MemoryPolicy::Local,
        ("interleave", None) => MemoryPolicy::Interleave(nodes_with_memory("all")?),
        ("interleave", Some(nodes)) => MemoryPolicy::Interleave(nodes_with_memory(nodes)?),
        ("bind", Some(nodes)) => MemoryPolicy::Bind(nodes_with_memory(nodes)?),
        ("prefer", Some(nodes)) => match nodes_with_memory(nodes)?[..] {
            [node] => MemoryPolicy::Prefer(node),
            _ => return Err(format!("`{text}` names several nodes, prefer takes one")),
        },
        ("default" | "local", Some(_)) => return Err(format!("{name} takes no nodes")),
        ("bind" | "prefer", None) => {
            return Err(format!("{name} needs nodes, as in `{name}:0`"));
        }
        _ => {
            return Err(format!(
                "`{name}` is not one of default, local, prefer, bind, interleave"
            ));
        }
    };
    Ok(Some(policy))
}

/// The nodes of a list, each of which has memory; `all` are all of those.
fn nodes_with_memory(text: &str) -> Result<Vec<usize>, String> {
    let path = "/sys/devices/system/node/has_memory";
    let list = std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    let with_memory = value::cores(list.trim())?;
    if text == "all" {
        return Ok(with_memory);
    }
    let nodes = value::cores(text)?;
    match nodes.iter().find(|node| !with_memory.contains(node)) {
        Some(node) => Err(format!(
            "node {node} is not one of those with memory in {path}"
        )),
        None => Ok(nodes),
    }
}
