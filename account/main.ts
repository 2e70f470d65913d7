/** `npm run account -- <command>`: a person's commands on the own account. */
import { runAccount } from './run.ts'

process.exitCode = await runAccount(process.argv.slice(2), process.env)
