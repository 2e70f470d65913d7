/** Starts a signer of price reports. */
import { argumentsOf } from '../service/command-line.ts'
import { runProcess } from '../service/process.ts'
import { compose } from './compose.ts'
import { readConfig } from './config.ts'

argumentsOf({ command: 'npm run oracle-signer', flags: {} })
await runProcess({ name: 'oracle-signer', readConfig, compose }, process.env)
