//! Compiles in the background, views of their results, and what the worker does on command.
//!
//! These need the program `tile`: the environment variable `TILE` names it, else it is looked for
//! beside the tests. Where there is none, they say so and pass.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use tile_lsp::Options;
use tile_worker::{Cache, WorkerCommand};

use crate::client::{Client, example};

/// The program that works, if it was built.
pub fn tile() -> Option<PathBuf> {
    let named = std::env::var_os("TILE").map(PathBuf::from);
    let beside = || {
        let exe = std::env::current_exe().ok()?;
        Some(exe.parent()?.parent()?.join("tile"))
    };
    let found = named.or_else(beside).filter(|path| path.is_file());
    if found.is_none() {
        eprintln!("skipped: the program tile is not built");
    }
    found
}

async fn start(program: PathBuf) -> Client {
    start_with(program, json!({ "arch": "sm_90a", "device": "cpu" })).await
}

async fn start_with(program: PathBuf, settings: Value) -> Client {
    let worker = WorkerCommand { program, args: vec!["worker".to_owned()] };
    let options = Options { worker: Some(worker), cache: Cache::disabled(), ..Options::default() };
    let mut client = Client::connect(options);
    let tile = json!({ "kernelStatus": true, "showsResults": true });
    let capabilities = json!({ "experimental": { "tile": tile } });
    client
        .initialize(json!({ "capabilities": capabilities, "initializationOptions": settings }))
        .await;
    client
}

async fn ready(client: &mut Client) -> Value {
    loop {
        let status = client.notification("tile/kernelStatus").await;
        if status["state"] != "compiling" {
            assert_eq!(status["state"], "ready", "{status}");
            return status;
        }
    }
}

async fn ptx(client: &mut Client, uri: &str) -> Value {
    let params = json!({
        "textDocument": { "uri": uri }, "kernel": "add_kernel", "stage": "ptx",
    });
    client.request("tile/viewIr", params).await.expect("the request succeeds")
}

#[tokio::test(flavor = "multi_thread")]
async fn ptx_follows_the_source_and_maps_back_to_it() {
    let Some(program) = tile() else { return };
    let mut client = start(program).await;
    let (uri, text) = example("vector_add.py");
    client.open(&uri, &text).await;
    assert_eq!(ready(&mut client).await["kernel"], "add_kernel");
    let view = ptx(&mut client, &uri).await;
    assert_eq!(view["languageId"], "ptx");
    assert_eq!(view["stale"], false);
    let first = view["text"].as_str().unwrap().to_owned();
    assert!(first.contains("add.f32") || first.contains("add.rn.f32"), "{first}");
    let line = text.lines().position(|line| line.contains("tl.store")).unwrap();
    let entries = view["lineMap"].as_array().unwrap();
    let became: Vec<&str> = first.lines().collect();
    let of_line = entries.iter().filter(|entry| entry["source"]["line"] == line);
    let stores = of_line.flat_map(|entry| {
        let bound = |name: &str| entry[name].as_u64().unwrap() as usize;
        &became[bound("start")..bound("end")]
    });
    assert!(stores.into_iter().any(|line| line.contains("st.global")), "{first}");

    let column = text.lines().nth(line).unwrap().find("x + y").unwrap() as u32;
    client.edit(&uri, 2, [line as u32, column + 2, line as u32, column + 3], "*").await;
    let view = ptx(&mut client, &uri).await;
    assert_ne!(view["text"].as_str().unwrap(), first);

    client.edit(&uri, 3, [line as u32, column, line as u32, column + 1], "nothing").await;
    let view = ptx(&mut client, &uri).await;
    assert_eq!(view["stale"], true, "{}", view["error"]);
    assert!(view["error"].as_str().unwrap().contains("nothing"));
    client.stop().await;
}

/// Lines of a stage's text that belong to a source line.
fn mapped(view: &Value, line: usize) -> Vec<&str> {
    let text: Vec<&str> = view["text"].as_str().expect("a text").lines().collect();
    let entries = view["lineMap"].as_array().expect("a list").iter();
    let of_line = entries.filter(|entry| entry["source"]["line"] == line);
    let bound = |entry: &Value, name: &str| entry[name].as_u64().expect("a line") as usize;
    of_line.flat_map(|entry| text[bound(entry, "start")..bound(entry, "end")].to_vec()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_stage_maps_to_the_source_and_is_written_to_a_file() {
    let Some(program) = tile() else { return };
    let mut client = start(program).await;
    let (uri, text) = example("vector_add.py");
    client.open(&uri, &text).await;
    ready(&mut client).await;
    let line = text.lines().position(|line| line.contains("tl.store")).unwrap();
    let stages = [
        ("ast", "tile-ir", "tl.store(", "ast.tir"),
        ("tile", "tile-ir", "store %", "tile.tir"),
        ("gpu", "tile-ir", "store %", "gpu.tir"),
        ("llvm", "llvm", "fadd", "ll"),
        ("ptx", "ptx", "st.global", "ptx"),
    ];
    for (stage, language, wanted, extension) in stages {
        for raw in [false, true] {
            let params = json!({
                "textDocument": { "uri": uri }, "stage": stage, "raw": raw,
                "position": { "line": line, "character": 4 },
            });
            let view = client.request("tile/viewIr", params).await.expect(stage);
            assert_eq!(view["languageId"], language);
            let became = mapped(&view, line);
            assert!(became.iter().any(|line| line.contains(wanted)), "{stage} {became:?}");
            assert!(became.len() < view["text"].as_str().unwrap().lines().count(), "{stage}");
        }
        let argument = json!({ "uri": uri, "kernel": "add_kernel", "stage": stage });
        let params = json!({ "command": "tile.viewIr", "arguments": [argument] });
        let written = client.request("workspace/executeCommand", params).await.expect(stage);
        let path = written["path"].as_str().unwrap();
        assert!(path.ends_with(&format!("add_kernel.{extension}")), "{path}");
        assert!(std::fs::read_to_string(path).unwrap().contains(wanted), "{stage}");
    }
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hovers_tell_layouts_the_ptx_of_a_line_and_what_a_run_left() {
    let Some(program) = tile() else { return };
    let mut client = start(program).await;
    let (uri, text) = example("vector_add.py");
    client.open(&uri, &text).await;
    ready(&mut client).await;
    let mut hover = async |word: &str, at: usize| {
        let (line, column) = text
            .lines()
            .enumerate()
            .find_map(|(line, content)| Some((line, content.find(word)? + at)))
            .expect("the example has it");
        let position = json!({ "line": line, "character": column });
        let params = json!({ "textDocument": { "uri": uri }, "position": position });
        let hover = client.request("textDocument/hover", params).await.unwrap();
        hover["contents"]["value"].as_str().unwrap_or_default().to_owned()
    };
    let loaded = hover("x = tl.load", 0).await;
    let layout = "Layout on sm_90a: 8 elements per thread, 4 in a row along axis 0";
    assert!(loaded.contains(layout), "{loaded}");
    assert!(loaded.contains("```ptx\n") && loaded.contains("ld.global"), "{loaded}");
    let sum = hover("x + y", 2).await;
    assert!(sum.contains("tile<1024 x fp32>") && sum.contains(layout), "{sum}");
    assert!(!hover("out_ptr", 1).await.contains("after the last run"));
    let params = json!({
        "command": "tile.runKernel", "arguments": [{ "uri": uri, "kernel": "add_kernel" }],
    });
    client.request("workspace/executeCommand", params).await.unwrap();
    let line = text.lines().position(|line| line.contains("out_ptr")).unwrap();
    let column = text.lines().nth(line).unwrap().find("out_ptr").unwrap();
    let position = json!({ "line": line, "character": column });
    let params = json!({ "textDocument": { "uri": uri }, "position": position });
    let hover = client.request("textDocument/hover", params).await.unwrap();
    let markdown = hover["contents"]["value"].as_str().unwrap();
    assert!(markdown.contains("`out` after the last run: fp32 ["), "{markdown}");
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lenses_and_hover_tell_what_was_measured() {
    let Some(program) = tile() else { return };
    let mut client = start(program).await;
    let (uri, text) = example("vector_add.py");
    client.open(&uri, &text).await;
    let status = ready(&mut client).await;
    let params = json!({ "textDocument": { "uri": uri } });
    let lenses = client.request("textDocument/codeLens", params).await.unwrap();
    let titles: Vec<&str> = lenses
        .as_array()
        .unwrap()
        .iter()
        .map(|l| l["command"]["title"].as_str().unwrap())
        .collect();
    assert!(titles.contains(&"▶ Run") && titles.contains(&"PTX"), "{titles:?}");
    let line = text.lines().position(|line| line.starts_with("def add_kernel")).unwrap();
    let position = json!({ "line": line, "character": 6 });
    let params = json!({ "textDocument": { "uri": uri }, "position": position });
    let hover = client.request("textDocument/hover", params).await.unwrap();
    let markdown = hover["contents"]["value"].as_str().unwrap();
    assert!(markdown.starts_with("**add_kernel** — `"), "{markdown}");
    if let Some(registers) = status["resources"]["registers"].as_u64() {
        assert!(titles.iter().any(|title| title.starts_with(&format!("{registers} regs"))));
        assert!(markdown.contains(&format!("{registers} registers")), "{markdown}");
    }
    client.stop().await;
}

/// The lens that stands where resources would, once a kernel is not being compiled any more.
async fn lens_without_resources(program: PathBuf, settings: Value) -> String {
    let mut client = start_with(program, settings).await;
    let (uri, text) = example("vector_add.py");
    client.open(&uri, &text).await;
    while client.notification("tile/kernelStatus").await["state"] == "compiling" {}
    let params = json!({ "textDocument": { "uri": uri } });
    let lenses =
        client.request("textDocument/codeLens", params).await.expect("the request is answered");
    let titles =
        lenses.as_array().expect("lenses are a list").iter().map(|lens| &lens["command"]["title"]);
    let title = titles.filter_map(Value::as_str).find(|title| title.starts_with("not measured"));
    let title = title.expect("a lens that says what is missing").to_owned();
    client.stop().await;
    title
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lens_says_what_is_missing_where_nothing_is_measured() {
    let title = lens_without_resources("/nowhere/tile".into(), json!({ "arch": "sm_90a" })).await;
    let start = "not measured: cannot start a worker process (";
    assert!(title.starts_with(start), "{title}");
    // A program that is no worker: what it says is no answer.
    let title = lens_without_resources("/bin/echo".into(), json!({ "arch": "sm_90a" })).await;
    let start = "not measured: the worker process ";
    assert!(title.starts_with(start), "{title}");
    let Some(program) = tile() else { return };
    let settings = json!({ "arch": "sm_90a", "ptxas": "/nowhere/ptxas" });
    let title = lens_without_resources(program, settings).await;
    assert_eq!(title, "not measured: there is no ptxas; `tile doctor --fix` fetches it");
}

#[tokio::test(flavor = "multi_thread")]
async fn lenses_tell_what_the_last_edit_changed() {
    let Some(program) = tile() else { return };
    let mut client = start(program).await;
    let (uri, text) = example("vector_add.py");
    client.open(&uri, &text).await;
    let before = ready(&mut client).await;
    client.notification("tile/irChanged").await;
    if before["resources"].is_null() {
        eprintln!("skipped: there is no assembler");
        return client.stop().await;
    }
    let registers = async |client: &mut Client| {
        let params = json!({ "textDocument": { "uri": uri } });
        let lenses = client.request("textDocument/codeLens", params).await.unwrap();
        let titles = lenses.as_array().unwrap().iter().map(|lens| &lens["command"]["title"]);
        let mut titles = titles.map(|title| title.as_str().unwrap().to_owned());
        titles.find(|title| title.contains(" regs")).unwrap()
    };
    assert!(!registers(&mut client).await.contains("(+"), "nothing was edited");
    let line = text.lines().position(|line| line.contains("tl.store")).unwrap() as u32;
    let more = "x = tl.sort(x, descending=True) + tl.sin(y)\n    ";
    client.edit(&uri, 2, [line, 4, line, 4], more).await;
    let after = ready(&mut client).await;
    let changed = client.notification("tile/irChanged").await;
    assert_eq!(changed, json!({ "uri": uri, "kernel": "add_kernel" }));
    let [old, new] = [&before, &after].map(|of| of["resources"]["registers"].as_i64().unwrap());
    assert_ne!(old, new);
    let wanted = format!("{new} regs ({:+})", new - old);
    let title = registers(&mut client).await;
    assert!(title.starts_with(&wanted), "{title}");
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn kernels_run_on_command() {
    let Some(program) = tile() else { return };
    let mut client = start(program).await;
    let (uri, text) = example("vector_add.py");
    client.open(&uri, &text).await;
    let params = json!({
        "command": "tile.runKernel", "arguments": [{ "uri": uri, "kernel": "add_kernel" }],
    });
    let results = client.request("workspace/executeCommand", params).await.unwrap();
    assert_eq!(results[0]["kernel"], "add_kernel");
    assert_eq!(results[0]["ok"], true, "{results}");
    let line = text.lines().position(|line| line.starts_with("def add_kernel")).unwrap();
    let position = json!({ "line": line, "character": 6 });
    let params = json!({ "textDocument": { "uri": uri }, "position": position });
    let hover = client.request("textDocument/hover", params).await.unwrap();
    let markdown = hover["contents"]["value"].as_str().unwrap();
    assert!(markdown.contains("Last run on cpu ended well"), "{markdown}");
    assert!(markdown.contains("- `out`: fp32 ["), "{markdown}");
    let params = json!({
        "command": "tile.benchKernel", "arguments": [{ "uri": uri, "kernel": "add_kernel" }],
    });
    let timed = client.request("workspace/executeCommand", params).await.unwrap();
    assert!(timed[0]["ms"]["median"].as_f64().is_some_and(|ms| ms > 0.0), "{timed}");
    assert!(timed[0]["outputs"].is_null(), "what `tile bench` prints: {timed}");
    let params = json!({
        "command": "tile.runKernel", "arguments": [{ "uri": uri, "kernel": "no_kernel" }],
    });
    let error = client.request("workspace/executeCommand", params).await.unwrap_err();
    assert_eq!(error["code"], -32803);
    assert!(error["message"].as_str().unwrap().contains("add_kernel"), "{error}");
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_launch_in_host_code_runs_on_command() {
    let Some(program) = tile() else { return };
    let mut client = start(program).await;
    let (uri, text) = example("vector_add.py");
    let (kernel, _) = text.split_once("\n# tile:").expect("the example has scenarios");
    let host = "import torch\n\ndef host():\n    x = torch.ones(100, device=\"cuda\")\n    \
                add_kernel[(1,)](x, x, torch.empty_like(x), 100, BLOCK_SIZE=128)\n";
    client.open(&uri, &format!("{kernel}\n\n{host}")).await;
    let params = json!({
        "command": "tile.runKernel", "arguments": [{ "uri": uri, "kernel": "add_kernel" }],
    });
    let results = client.request("workspace/executeCommand", params).await.unwrap();
    assert_eq!(results[0]["ok"], true, "{results}");
    assert_eq!(results[0]["outputs"]["out_ptr"]["mean"], 2.0, "{results}");
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_worker_is_told_once_and_survived() {
    let mut client = start("/nonexistent/tile".into()).await;
    let (uri, text) = example("vector_add.py");
    client.open(&uri, &text).await;
    let told = client.notification("window/showMessage").await;
    assert!(told["message"].as_str().unwrap().contains("/nonexistent/tile"), "{told}");
    let view = ptx(&mut client, &uri).await;
    assert_eq!(view["text"], "");
    assert!(view["error"].as_str().unwrap().contains("worker"), "{view}");
    client.stop().await;
}

/// Process ids of this process's children that are workers.
fn workers() -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").expect("Linux has it").flatten();
    let children =
        tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    let children: Vec<String> = children
        .flat_map(|ids| ids.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
        .collect();
    let is_worker = |id: &String| {
        let command = std::fs::read_to_string(format!("/proc/{id}/cmdline"));
        command.is_ok_and(|command| command.ends_with("\0worker\0"))
    };
    children.into_iter().filter(is_worker).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_is_killed_is_replaced_and_told_of_once() {
    let Some(program) = tile() else { return };
    // Tests run side by side in one process; this one's workers wait before they work.
    let line = format!("sleep 0.4; exec {} worker", program.display());
    let args = vec!["-c".to_owned(), line, "worker".to_owned()];
    let worker = WorkerCommand { program: "/bin/sh".into(), args };
    let options = Options { worker: Some(worker), cache: Cache::disabled(), ..Options::default() };
    let mut client = Client::connect(options);
    let capabilities = json!({ "experimental": { "tile": { "kernelStatus": true } } });
    let settings = json!({ "arch": "sm_90a" });
    client
        .initialize(json!({ "capabilities": capabilities, "initializationOptions": settings }))
        .await;
    let (uri, text) = example("vector_add.py");
    client.open(&uri, &text).await;
    let status = client.notification("tile/kernelStatus").await;
    assert_eq!(status["state"], "compiling");
    let slow = |id: &String| {
        let command = std::fs::read_to_string(format!("/proc/{id}/cmdline"));
        command.is_ok_and(|command| command.starts_with("/bin/sh\0"))
    };
    // The server says that it compiles before the worker's process is there.
    let started = async {
        loop {
            let mine: Vec<String> = workers().into_iter().filter(slow).collect();
            if !mine.is_empty() {
                break mine;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let mine = tokio::time::timeout(Duration::from_secs(10), started).await.expect("a worker");
    for id in &mine {
        std::process::Command::new("kill").args(["-9", id]).status().expect("kill runs");
    }
    let line = text.lines().position(|line| line.starts_with("def add_kernel")).unwrap();
    let position = json!({ "line": line, "character": 6 });
    let params = json!({ "textDocument": { "uri": uri }, "position": position });
    let hover = client.request("textDocument/hover", params).await.unwrap();
    assert!(hover["contents"]["value"].as_str().unwrap().contains("add_kernel"), "{hover}");
    let told = client.notification("window/showMessage").await;
    assert!(told["message"].as_str().unwrap().contains("started again"), "{told}");
    assert_eq!(ready(&mut client).await["kernel"], "add_kernel");
    client.expect_no_more("window/showMessage").await;
    client.stop().await;
}

/// A program in the place of ptxas that notes its process and the one that started it, and ends
/// after a minute, or at once where there is a file `quick` beside it.
fn slow_assembler(folder: &std::path::Path) -> PathBuf {
    use std::os::unix::fs::PermissionsExt;

    let program = folder.join("ptxas");
    let script = "#!/bin/sh\nhere=$(dirname \"$0\")\n\
        if [ -e \"$here/quick\" ]; then echo no; exit 1; fi\n\
        echo $$ $PPID > \"$here/new.$$\"; mv \"$here/new.$$\" \"$here/started.$$\"\nexec sleep 60\n";
    std::fs::write(&program, script).expect("the folder can be written");
    let may_run = PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&program, may_run).expect("the program is ours");
    program
}

/// The assemblers that have started: each with the worker that started it.
fn assemblers(folder: &std::path::Path) -> Vec<[String; 2]> {
    let entries = std::fs::read_dir(folder).expect("the folder is there").flatten();
    entries
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("started."))
        .map(|entry| {
            let ids = std::fs::read_to_string(entry.path()).expect("it is written whole");
            let (own, worker) = ids.trim().split_once(' ').expect("two numbers");
            [own.to_owned(), worker.to_owned()]
        })
        .collect()
}

/// Waits until a worker that is not among `killed` runs an assembler.
async fn assembling(folder: &std::path::Path, killed: &[String]) -> String {
    loop {
        let found = assemblers(folder).into_iter().find(|[_, worker]| !killed.contains(worker));
        if let Some([_, worker]) = found {
            return worker;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Waits until a process has ended; it may still wait to be collected.
async fn ended(id: &str) {
    let runs = || {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat"));
        stat.is_ok_and(|stat| !stat.contains(") Z "))
    };
    while runs() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_killed_while_it_compiles_leaves_nothing_behind() {
    let Some(program) = tile() else { return };
    let folder = tempfile::tempdir().unwrap();
    let ptxas = slow_assembler(folder.path());
    let mut client = start(program).await;
    let settings = json!({ "tile": { "arch": "sm_90a", "ptxas": ptxas } });
    client.notify("workspace/didChangeConfiguration", json!({ "settings": settings })).await;
    let (uri, text) = example("vector_add.py");
    client.open(&uri, &text).await;
    let mut killed = Vec::new();
    // A task whose worker dies is tried once more, since whoever killed it may not do so again.
    for _ in 0..2 {
        let worker = assembling(folder.path(), &killed).await;
        let status = std::process::Command::new("kill").args(["-9", &worker]).status();
        assert!(status.expect("kill runs").success());
        // It may have run several at once.
        for [assembler, of] in assemblers(folder.path()) {
            if of == worker {
                ended(&assembler).await;
            }
        }
        killed.push(worker);
    }
    let status = loop {
        let status = client.notification("tile/kernelStatus").await;
        if status["state"] == "error" {
            break status;
        }
    };
    assert_eq!(status["message"], "the worker process died (signal 9)", "{status}");
    let told = client.notification("window/showMessage").await;
    assert!(told["message"].as_str().unwrap().contains("started again"), "{told}");
    // The server has the text as it was typed, and a worker that compiles it.
    std::fs::write(folder.path().join("quick"), "").unwrap();
    let line = text.lines().position(|line| line.contains("tl.store")).unwrap() as u32;
    client.edit(&uri, 2, [line, 0, line, 0], "    z = x * y\n").await;
    let position = json!({ "line": line, "character": 4 });
    let params = json!({ "textDocument": { "uri": uri }, "position": position });
    let hover = client.request("textDocument/hover", params).await.unwrap();
    assert!(hover["contents"]["value"].as_str().unwrap().contains("fp32"), "{hover}");
    let status = loop {
        let status = client.notification("tile/kernelStatus").await;
        if status["state"] != "compiling" {
            break status;
        }
    };
    let message = status["message"].as_str().unwrap_or_default();
    assert!(message.contains("ptxas rejected the PTX"), "a new worker asked it: {status}");
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn half_typed_text_shows_the_older_ptx() {
    let Some(program) = tile() else { return };
    let mut client = start(program).await;
    let (uri, text) = example("vector_add.py");
    client.open(&uri, &text).await;
    let good = ptx(&mut client, &uri).await;
    let line = text.lines().position(|line| line.contains("tl.store")).unwrap() as u32;
    client.edit(&uri, 2, [line, 4, line, 4], "z = (x +\n    ").await;
    let view = ptx(&mut client, &uri).await;
    assert_eq!(view["stale"], true, "{}", view["error"]);
    assert_eq!(view["text"], good["text"]);
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn configurations_are_measured_and_tuned() {
    let Some(program) = tile() else { return };
    let mut client = start(program).await;
    let uri = "file:///nowhere/tuned.tile";
    let text = "@triton.autotune(configs=[triton.Config({\"BLOCK\": 128}), triton.Config({\"BLOCK\": 256})], key=[])\n\
        @triton.jit\ndef set_kernel(x_ptr, BLOCK: tl.constexpr):\n    \
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n    \
        tl.store(x_ptr + at, tl.zeros((BLOCK,), tl.float32))\n\n\
        # tile: x = empty(512)\n# tile: set_kernel[lambda meta: (cdiv(512, meta[\"BLOCK\"]),)](x)\n\
        # tile: assert allclose(x, zeros(512))\n";
    client.open(uri, text).await;
    let argument = json!({ "uri": uri, "kernel": "set_kernel" });
    let run = |command: &str| json!({ "command": command, "arguments": [argument.clone()] });
    let rows = client
        .request("workspace/executeCommand", run("tile.measureConfigurations"))
        .await
        .unwrap();
    assert_eq!(rows.as_array().unwrap().len(), 2, "{rows}");
    assert!(rows[0]["error"].is_null(), "{rows}");
    let rows = client.request("workspace/executeCommand", run("tile.tuneKernel")).await.unwrap();
    assert_eq!(rows.as_array().unwrap().len(), 2, "{rows}");
    let fastest = rows[0]["values"]["BLOCK"].as_str().unwrap();
    let apply = format!("Apply the fastest configuration, BLOCK={fastest}");
    let here = json!({ "line": 2, "character": 6 });
    let params = json!({
        "textDocument": { "uri": uri }, "range": { "start": here, "end": here },
        "context": { "diagnostics": [] },
    });
    let actions = client.request("textDocument/codeAction", params).await.unwrap();
    let titles: Vec<&str> =
        actions.as_array().unwrap().iter().map(|a| a["title"].as_str().unwrap()).collect();
    // The first one stays where it is.
    let moves = titles.iter().any(|title| title.starts_with(&apply));
    assert_eq!(moves, fastest == "256", "{titles:?}");
    if moves {
        let is_apply = |action: &&Value| action["title"].as_str().unwrap().starts_with(&apply);
        let action = actions.as_array().unwrap().iter().find(is_apply).unwrap();
        let edits = action["edit"]["changes"][uri].as_array().unwrap().iter();
        let texts: Vec<&str> = edits.map(|edit| edit["newText"].as_str().unwrap()).collect();
        let config = |block: u32| format!("triton.Config({{\"BLOCK\": {block}}})");
        assert_eq!(texts, [config(256), config(128)]);
    }
    assert!(titles.iter().any(|title| title.starts_with("Pin ")), "{titles:?}");
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn configurations_are_timed_as_host_code_launches_them() {
    let Some(program) = tile() else { return };
    let mut client = start(program).await;
    let uri = "file:///nowhere/launched.tile";
    let text = "import torch\n\n\
        @triton.autotune(configs=[triton.Config({\"BLOCK\": 128}), triton.Config({\"BLOCK\": 64})], key=[])\n\
        @triton.jit\ndef add_one(x_ptr, out_ptr, BLOCK: tl.constexpr):\n    \
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n    \
        tl.store(out_ptr + at, tl.load(x_ptr + at) + 1)\n\n\
        def host():\n    x = torch.ones(512, device=\"cuda\")\n    \
        add_one[lambda meta: (512 // meta[\"BLOCK\"],)](x, torch.empty_like(x))\n";
    client.open(uri, text).await;
    let argument = json!({ "uri": uri, "kernel": "add_one" });
    let params = json!({ "command": "tile.tuneKernel", "arguments": [argument] });
    let rows = client.request("workspace/executeCommand", params).await.unwrap();
    let mut blocks = Vec::new();
    for row in rows.as_array().unwrap() {
        blocks.push(row["values"]["BLOCK"].as_str().unwrap());
        // The grid follows from the configuration, so all is written.
        assert_eq!(row["outputs"]["out_ptr"]["mean"], 2.0, "{rows}");
    }
    blocks.sort_unstable();
    assert_eq!(blocks, ["128", "64"]);
    client.stop().await;
}

/// A product whose configurations take 48 KiB, 240 KiB and 384 KiB of shared memory.
const DEEP: &str = concat!(
    r#"@triton.autotune(configs=[
    triton.Config({"BK": 64}, num_stages=1),
    triton.Config({"BK": 64}, num_stages=5),
    triton.Config({"BK": 128}, num_stages=4),
], key=[])
"#,
    include_str!("../../../../tests/kernels/deep.tile"),
    r#"
# tile: a, b, c = randn(128, 1280, dtype=fp16), randn(1280, 256, dtype=fp16), empty(128, 256)
# tile: deep[(1,)](a, b, c, 1280, M=128, N=256, num_warps=8)
"#
);

/// Diagnostics of the family, as lines and severities, once there are `count`.
async fn of_family(client: &mut Client, family: &str, count: usize) -> Vec<Value> {
    loop {
        let published = client.notification("textDocument/publishDiagnostics").await;
        let all = published["diagnostics"].as_array().into_iter().flatten();
        let found: Vec<Value> = all
            .filter(|found| found["code"].as_str().is_some_and(|code| code.starts_with(family)))
            .cloned()
            .collect();
        if found.len() == count {
            return found;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn configurations_that_do_not_fit_are_marked() {
    let Some(program) = tile() else { return };
    let mut client = start(program).await;
    let uri = "file:///nowhere/deep.tile";
    client.open(uri, DEEP).await;
    let found = of_family(&mut client, "resource/shared-memory", 2).await;
    let mut lines: Vec<u64> =
        found.iter().map(|found| found["range"]["start"]["line"].as_u64().unwrap()).collect();
    lines.sort_unstable();
    assert_eq!(lines, [2, 3]);
    for found in &found {
        assert_eq!(found["severity"], 3, "one among several is no mistake: {found}");
        assert!(found["codeDescription"]["href"].as_str().is_some(), "{found}");
        let message = found["message"].as_str().unwrap();
        assert!(message.contains("`deep` with BK="), "{message}");
        assert!(message.contains("more than a block on sm_90a can have (232448)"), "{message}");
        let related = found["relatedInformation"].as_array().unwrap().iter();
        let related: Vec<&str> = related.map(|at| at["message"].as_str().unwrap()).collect();
        assert!(related.contains(&"multiplied here"), "{related:?}");
    }
    // With fewer stages the first of them fits.
    let column = DEEP.lines().nth(2).unwrap().find("=5").unwrap() as u32 + 1;
    client.edit(uri, 2, [2, column, 2, column + 1], "3").await;
    let found = of_family(&mut client, "resource/shared-memory", 1).await;
    assert_eq!(found[0]["range"]["start"]["line"], 3);
    client.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn costs_are_hints_with_their_explanation() {
    let Some(program) = tile() else { return };
    let mut client = start(program).await;
    let uri = "file:///nowhere/far.tile";
    let text = "@triton.jit\ndef far(x_ptr, y_ptr, n, BLOCK: tl.constexpr):\n    \
        rows = tl.arange(0, BLOCK)\n    tl.store(y_ptr + rows, tl.load(x_ptr + rows * n))\n\n\
        # tile: x, y = randn(128, 64), empty(128)\n# tile: far[(1,)](x, y, 64, BLOCK=128)\n";
    client.open(uri, text).await;
    let found = of_family(&mut client, "perf/", 1).await;
    assert_eq!((&found[0]["code"], &found[0]["severity"]), (&json!("perf/uncoalesced"), &json!(4)));
    assert_eq!(found[0]["range"]["start"]["line"], 3);
    let page = found[0]["codeDescription"]["href"].as_str().unwrap();
    assert!(page.ends_with("#perfuncoalesced"), "{page}");
    let related = found[0]["relatedInformation"].to_string();
    assert!(related.contains("in this launch"), "{related}");
    client.stop().await;
}
