/** Starts a process of the engine. */
import { runProcess } from '../../service/process.ts'
import { compose } from './compose.ts'
import { readConfig } from './config.ts'

await runProcess({ name: 'engine', readConfig, compose }, process.env)
