// Package killpoint names the places at which a crash matters, for the tests that crash
// there. In what ships each function is empty and costs nothing; built with the tag
// killpoints, a process
//
//   - appends each point that it passes to the file that the environment variable
//     WRIT_KILLPOINTS_LOG names, one line each: the point's name, a tab, and a detail;
//   - sends itself SIGKILL at the pass that WRIT_KILL_AT names as NAME#N, counted from 1, or
//     goes on and does so some time later, as in run.before/launch#1+3ms. The name * stands
//     for any point.
//
// A name says where the process is and what it is at, for example
// "commit.after/settle=start+launch,begin=freeze_outputs+collect" or "run.after/launch".
package killpoint
