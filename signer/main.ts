/** Starts a signer of price reports. */
import { runProcess } from '../service/process.ts'
import { compose } from './compose.ts'
import { readConfig } from './config.ts'

await runProcess({ name: 'oracle-signer', readConfig, compose }, process.env)
