/** Starts the keeper process. */
import { runProcess } from '../service/process.ts'
import { compose } from './compose.ts'
import { readConfig } from './config.ts'

await runProcess({ name: 'keeper', readConfig, compose }, process.env)
