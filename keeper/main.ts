/** Starts the keeper process. */
import { setFlagsFromString } from 'node:v8'
import { runProcess } from '../service/process.ts'
import { compose } from './compose.ts'
import { readConfig } from './config.ts'

// Otherwise V8 concludes from the first batches that the objects of a batch live long and allocates them in the old
// generation: collecting them then takes several times longer than clearing (bench/auction.ts).
setFlagsFromString('--no-allocation-site-pretenuring')

await runProcess({ name: 'keeper', readConfig, compose }, process.env)
