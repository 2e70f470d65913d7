/** Starts the indexer process. */
import { runProcess } from '../service/process.ts'
import { compose } from './compose.ts'
import { readConfig } from './config.ts'

await runProcess({ name: 'indexer', readConfig, compose }, process.env)
