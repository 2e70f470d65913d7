/** `npm run ops -- market <command>`: an operator's commands on a running exchange. */
import { runOps } from './run.ts'

process.exitCode = await runOps(process.argv.slice(2), process.env)
