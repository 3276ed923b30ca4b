//! The reference of the command line, which is made from the command line itself.

use clap::{Arg, Command, CommandFactory};
use expect_test::expect_file;

use super::Cli;

/// What stands above the commands.
const HEAD: &str =
    "# Command line\n\nMade from the program: `tile COMMAND --help` says the same.\n";

#[test]
fn the_reference_lists_every_command_and_flag() {
    let mut program = Cli::command().term_width(0);
    program.build();
    let mut page = format!("{HEAD}\n{}\n", about(&program));
    for command in program.get_subcommands().filter(|command| is_listed(command)) {
        page += &section(command);
    }
    expect_file!["../../../../docs/command-line.md"].assert_eq(&page);
}

fn is_listed(command: &Command) -> bool {
    !command.is_hide_set() && command.get_name() != "help"
}

fn about(command: &Command) -> String {
    let text = command.get_long_about().or(command.get_about());
    text.map(ToString::to_string).unwrap_or_default()
}

fn section(command: &Command) -> String {
    let arguments = command.get_arguments().filter(|arg| !arg.is_hide_set());
    let rows = arguments.filter(|arg| !matches!(arg.get_id().as_str(), "help" | "version"));
    let rows: String = rows.map(row).collect();
    let table = format!("\n| argument | meaning |\n|---|---|\n{rows}");
    let name = command.get_name();
    let table = if rows.is_empty() { "" } else { &table };
    format!("\n## tile {name}\n\n{}\n{table}", about(command))
}

fn row(arg: &Arg) -> String {
    let value = arg.get_value_names().map(|names| names.join(" ")).unwrap_or_default();
    let long = arg.get_long().map(|long| format!("--{long}"));
    let short = arg.get_short().map(|short| format!("-{short}"));
    let flags = short.into_iter().chain(long).collect::<Vec<_>>().join(", ");
    let takes_value = arg.get_action().takes_values();
    let spelled = if takes_value { format!("{flags} {value}") } else { flags };
    let help = arg.get_long_help().or(arg.get_help()).map(ToString::to_string).unwrap_or_default();
    let help = escaped(help.trim_end_matches('.'));
    let choices = if takes_value { choices(arg) } else { String::new() };
    format!("| `{}` | {help}.{choices} |\n", escaped(spelled.trim()))
}

/// What values there are, where they are few, and which is taken when none is given.
fn choices(arg: &Arg) -> String {
    let values = arg.get_possible_values();
    let names: Vec<String> = values.iter().map(|value| format!("`{}`", value.get_name())).collect();
    let default = arg.get_default_values().first().map(|value| value.to_string_lossy());
    let default = default.map(|value| format!(" Without it `{value}`.")).unwrap_or_default();
    let among = format!(" One of {}.", names.join(", "));
    if names.is_empty() { default } else { among + &default }
}

fn escaped(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}
