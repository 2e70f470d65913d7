/** Starts the process that closes inherited positions of the backstop. */
import { argumentsOf } from '../service/command-line.ts'
import { runProcess } from '../service/process.ts'
import { compose } from './compose.ts'
import { readConfig } from './config.ts'

argumentsOf({ command: 'npm run backstop', flags: {} })
await runProcess({ name: 'backstop', readConfig, compose }, process.env)
