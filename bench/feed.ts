/**
 * `npm run bench:feed`: measures a complete stack's live feed under crossing flow, the memory of its idle sockets, and
 * rates of public reads.
 */
import { loadavg } from 'node:os'
import {
  argumentsOf,
  positiveNumber,
  text,
  toggle,
  wholeNumber,
  withDefault,
} from '../service/command-line.ts'
import { measureDelivery } from './feed/delivery.ts'
import { measureIdle } from './feed/idle.ts'
import { measureReads } from './feed/reads.ts'
import { startComplete } from './intake/complete-target.ts'
import { measureSignatures } from './intake/signatures.ts'

const PARTS = ['delivery', 'idle', 'reads']

const options = argumentsOf({
  command: 'npm run bench:feed --',
  flags: {
    parts: withDefault(text('<list>', `of ${PARTS.join(', ')}`), PARTS.join()),
    sockets: withDefault(wholeNumber('sockets that follow a market', { least: 1 }), 1_000),
    rate: withDefault(positiveNumber('orders per second meanwhile, half of them crossing'), 300),
    cancels: toggle('resting orders are also cancelled, in recorded proportion'),
    seconds: withDefault(positiveNumber('duration of the measurement of the delivery'), 20),
    warmup: withDefault(positiveNumber('seconds of the same load before it'), 5),
    idle: withDefault(wholeNumber('idle sockets', { least: 1 }), 5_000),
    reading: withDefault(positiveNumber('seconds of each kind of read'), 3),
  },
})
const parts = options.parts.split(',')
const unknown = parts.filter((part) => !PARTS.includes(part))
if (unknown.length > 0)
  throw new RangeError(`--parts: unknown ${unknown.join()}; known are ${PARTS.join(', ')}`)

/** All clients of the measurement share an address. */
const UNLIMITED = '1000000000'
const LIMITS = {
  ...{
    LIVE_CONNECTIONS_PER_ADDRESS: '20000',
    HTTP_CONNECTIONS_PER_ADDRESS: '20000',
    LIVE_MESSAGES: '100000',
  },
  ...{ RATE_LIMIT_ADDRESS: UNLIMITED, RATE_LIMIT_READS: UNLIMITED, RATE_LIMIT_ORDERS: UNLIMITED },
}

const target = await startComplete({ accounts: 64 })
try {
  await target.stack.api.restart('SIGTERM', LIMITS)
  await target.stack.api.ready()
  const figures: Record<string, unknown> = { recoveries: Math.round(measureSignatures().bare) }
  if (parts.includes('delivery')) {
    const delivery = await measureDelivery(target, options)
    const { cores, ...row } = delivery
    figures.delivery = delivery
    console.log(`batch committed → last byte on ${options.sockets} sockets, ${options.rate} orders/s`)
    console.table([row])
    console.log('cores in use')
    console.table(cores)
  }
  if (parts.includes('idle')) {
    figures.idle = await measureIdle(target, options.idle)
    console.log('memory of the api process')
    console.table([figures.idle])
  }
  if (parts.includes('reads')) {
    const { empty, reads } = await measureReads(target, options.reading)
    figures.reads = { empty, ...reads }
    console.log(
      `public reads; an empty route: ${empty.rate} per second, ${empty.us} µs of processor time each`,
    )
    console.table(reads)
  }
  console.log(JSON.stringify({ bench: 'feed', ...figures, load: loadavg()[0] }))
} finally {
  await target.stop()
}
