//! Tests of the machine's description of itself.

use super::*;

#[test]
fn the_totals_are_read_as_proc_5_describes_them() {
    let stat = "cpu  10 20 30 40 50 60 70 80 90 100\ncpu0 1 2 3 4 5 6 7 8 9 10\nintr 5\n";
    let times = SystemTimes::parse(stat, 10_000_000).unwrap();
    let expected = SystemTimes {
        user_ns: 100_000_000,
        nice_ns: 200_000_000,
        system_ns: 300_000_000,
        idle_ns: 400_000_000,
        iowait_ns: 500_000_000,
        irq_ns: 600_000_000,
        softirq_ns: 700_000_000,
        steal_ns: 800_000_000,
    };
    assert_eq!(times, expected);
    assert_eq!(times.busy_ns(), 1_900_000_000);
    assert_eq!(times.since(&times), SystemTimes::default());
}

#[test]
fn old_and_broken_totals_are_told_apart() {
    let old = SystemTimes::parse("cpu  1 2 3 4\n", 1).unwrap();
    assert_eq!((old.idle_ns, old.steal_ns), (4, 0));
    assert_eq!(SystemTimes::parse("cpu  1 2 3\n", 1), None);
    assert_eq!(SystemTimes::parse("cpu0 1 2 3 4\n", 1), None);
    assert_eq!(SystemTimes::parse("", 1), None);
}

#[test]
fn the_totals_of_this_machine_cover_its_uptime() {
    let times = SystemTimes::now().unwrap();
    assert!(times.busy_ns() > 0);
    let later = SystemTimes::now().unwrap();
    assert!(later.user_ns >= times.user_ns);
}

#[test]
fn the_model_is_found_under_the_names_of_several_architectures() {
    let x86 = "processor\t: 0\nmodel\t\t: 85\nmodel name\t: Intel(R) Xeon(R)\n";
    assert_eq!(model_in(x86).as_deref(), Some("Intel(R) Xeon(R)"));
    assert_eq!(model_in("cpu\t\t: POWER9\n").as_deref(), Some("POWER9"));
    assert_eq!(model_in("processor\t: 0\n"), None);
    assert!(!model_name().is_empty());
}

#[test]
fn a_pinned_thread_runs_where_it_was_told_and_can_be_restored() {
    std::thread::spawn(|| {
        let allowed = Affinity::current().unwrap();
        let last = *allowed.cores().last().unwrap();
        let before = pin(&[last]).unwrap();
        assert_eq!(before, allowed);
        assert_eq!(Affinity::current().unwrap().cores(), [last]);
        assert_eq!(rustix::thread::sched_getcpu(), last);
        before.apply().unwrap();
        assert_eq!(Affinity::current().unwrap(), allowed);
    })
    .join()
    .unwrap();
}

#[test]
fn impossible_cores_are_refused() {
    assert!(Affinity::of(&[]).is_err());
    assert!(Affinity::of(&[CpuSet::MAX_CPU]).is_err());
    let absent = Affinity::of(&[CpuSet::MAX_CPU - 1]).unwrap();
    assert!(absent.apply().is_err());
}

#[test]
fn cpu_time_grows_with_work_and_not_with_sleep() {
    let (process, thread) = (process_cpu_ns(), thread_cpu_ns());
    while thread_cpu_ns() - thread < 2_000_000 {
        std::hint::spin_loop();
    }
    assert!(process_cpu_ns() - process >= 2_000_000);
    let before = thread_cpu_ns();
    std::thread::sleep(std::time::Duration::from_millis(30));
    assert!(thread_cpu_ns() - before < 25_000_000);
}

#[test]
fn a_sleep_is_a_voluntary_switch() {
    let before = Usage::of_thread();
    std::thread::sleep(std::time::Duration::from_millis(1));
    let spent = Usage::of_thread().since(&before).switches;
    assert!(spent.voluntary >= 1);
    assert!(Usage::of_process().switches.voluntary >= 1);
}

#[test]
fn a_hypervisor_is_recognised_by_the_firmwares_tables() {
    let folder = std::env::temp_dir().join(format!("ugeom-dmi-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    assert!(!dmi_names_a_hypervisor(&folder));
    fs::write(folder.join("sys_vendor"), "Dell Inc.\n").unwrap();
    assert!(!dmi_names_a_hypervisor(&folder));
    fs::write(folder.join("product_name"), "VMware Virtual Platform\n").unwrap();
    assert!(dmi_names_a_hypervisor(&folder));
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn cores_and_load_are_plausible() {
    assert!(online_cores() >= 1);
    assert!(load_average().iter().all(|load| (0.0..1e6).contains(load)));
}

#[test]
fn every_core_has_a_line_of_its_own() {
    let stat = "cpu  30 0 12 400 0 0 0 0 0 0\ncpu0 10 0 4 200 0 0 0 0 0 0\n\
        cpu1 20 0 8 200 0 0 0 0 0 0\nintr 5 6\ncpufreq 1 2 3 4\n";
    let cores = SystemTimes::parse_cores(stat, 10);
    let busy: Vec<u64> = cores.iter().map(SystemTimes::busy_ns).collect();
    assert_eq!(busy, [140, 280]);
    let (all, cores) = SystemTimes::now_with_cores().unwrap();
    assert!(!cores.is_empty() && cores.len() <= 4096);
    assert!(cores.iter().map(|core| core.user_ns).sum::<u64>() <= all.user_ns + 1_000_000_000);
}

#[test]
fn children_count_once_they_were_waited_for() {
    let before = Usage::of_children();
    let ended = std::process::Command::new("sh")
        .args(["-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done"])
        .status();
    if ended.is_err() {
        return;
    }
    let spent = Usage::of_children().since(&before);
    assert!(spent.user_ns + spent.system_ns > 0, "{spent:?}");
}

#[test]
fn a_thread_runs_on_a_core_that_it_may_use() {
    let allowed = Affinity::current().unwrap().cores();
    let core = current_core() as usize;
    assert!(allowed.contains(&core), "{core} of {allowed:?}");
}

#[test]
fn lists_of_cores_are_counted() {
    assert_eq!(count_in("0-3,8"), Some(5));
    assert_eq!((count_in("0"), count_in("0-127")), (Some(1), Some(128)));
    assert_eq!(
        (count_in(""), count_in("3-0"), count_in("a-b")),
        (None, None, None)
    );
    assert!(possible_cores() >= online_cores());
}

#[test]
fn what_a_task_used_is_read_whatever_its_name_is() {
    let stat = "7 (a) R 1) b) S 1 2 3 4 5 6 70 8 90 10 110 120 13 14 20 0 1";
    let status = "Name:\tx\nvoluntary_ctxt_switches:\t5\nnonvoluntary_ctxt_switches:\t6\n";
    let usage = Usage::parse_task(stat, status, 10).unwrap();
    assert_eq!((usage.user_ns, usage.system_ns), (1100, 1200));
    assert_eq!((usage.faults_minor, usage.faults_major), (70, 90));
    assert_eq!(
        (usage.switches.voluntary, usage.switches.involuntary),
        (5, 6)
    );
    assert_eq!(Usage::parse_task("7 (x", status, 10), None);
    assert_eq!(Usage::parse_task(stat, "", 10), None);
    // SAFETY: gettid(2) has no requirements.
    let tid = unsafe { libc::gettid() };
    let before = Usage::of_thread();
    let task = Usage::of_task(tid).unwrap();
    assert!(task.switches.voluntary >= before.switches.voluntary);
    assert_eq!(Usage::of_task(i32::MAX), None);
}
