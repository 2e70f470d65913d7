/** The operator's view: read-only, behind the operator's password, and not a part of the contract with traders. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Db } from '../../db/client.ts'
import type { Clock } from '../../service/clock.ts'
import { isOperator } from '../../service/operator-password.ts'
import type { FailedCredentials } from '../auth/failed-credentials.ts'
import { ApiError } from '../errors.ts'
import type { App } from '../http/types.ts'
import { isoTime } from '../wire/amounts.ts'
import { closed } from '../wire/schema.ts'
import type { OperateConfig } from './config.ts'
import { type ProcessReading, readProcesses } from './processes.ts'
import {
  chainProgress,
  digestsOf,
  feedStates,
  jobLeases,
  journalState,
  marketStates,
  relayerKeys,
} from './query.ts'
import {
  bankPauseEnd,
  engineView,
  headsOf,
  leasesView,
  marketsView,
  oracleView,
  processesView,
  queuesView,
  relayersView,
} from './view.ts'

export interface OperatePorts {
  readonly db: Db
  readonly clock: Clock
  readonly failures: FailedCredentials
  readonly config: {
    readonly operate: OperateConfig | null
    readonly chainId: number
    readonly oracleMaxAgeMs: number
  }
}

/** Answers are kept for so long: many open pages cost as much as one. */
const KEPT_MS = 1_000

/** The result is shared by all callers for `KEPT_MS` from its beginning. A failure is not kept. */
function kept<Value>(read: () => Promise<Value>): () => Promise<Value> {
  let began = Number.NEGATIVE_INFINITY
  let current: Promise<Value> | null = null
  return () => {
    if (current !== null && performance.now() - began < KEPT_MS) return current
    began = performance.now()
    const reading = read()
    reading.catch(() => {
      if (current === reading) current = null
    })
    current = reading
    return reading
  }
}

const hidden = { hide: true, querystring: closed({}) }

/** Without a password in the configuration the paths do not exist. */
export function operateRoutes(app: App, { db, clock, failures, config }: OperatePorts): void {
  const { operate, chainId, oracleMaxAgeMs } = config
  if (operate === null) return

  async function requireOperator({ headers, ip }: FastifyRequest, reply: FastifyReply): Promise<void> {
    failures.check(ip)
    // Neither a browser's nor a proxy's cache may keep an answer.
    reply.header('cache-control', 'no-store')
    if (isOperator(headers.authorization, operate?.password ?? '')) return
    if (headers.authorization !== undefined) await failures.count(ip)
    throw new ApiError('OPERATOR_PASSWORD', {
      field: 'authorization',
      expected: 'HTTP basic authentication with the password of QUEUE_PAGE_PASSWORD, any user name',
    })
  }

  const processes = kept(() => readProcesses(operate.targets))

  function serve(
    path: string,
    read: (readings: readonly ProcessReading[]) => object | Promise<object>,
  ): void {
    const answer = kept(async () => {
      const content = await read(await processes())
      return { time: isoTime(clock.now()), ...content }
    })
    app.get(path, { schema: hidden, onRequest: requireOperator }, answer)
  }

  serve('/operate/engine', async (readings) => {
    const [journal, digests] = await Promise.all([journalState(db), digestsOf(db, headsOf(readings))])
    return engineView(journal, readings, digests)
  })
  serve('/operate/markets', async (readings) => {
    const [rows, progress] = await Promise.all([marketStates(db), chainProgress(db)])
    const now = clock.now()
    return {
      bank_pause_ends_at: bankPauseEnd(progress?.bank_pause_ends_at ?? 0, now),
      markets: marketsView(rows, readings, now),
    }
  })
  serve('/operate/relayers', async (readings) => {
    const [keys, leases] = await Promise.all([relayerKeys(db, chainId), jobLeases(db)])
    const now = clock.now()
    return { relayers: relayersView(keys, readings, now), leases: leasesView(leases, now) }
  })
  serve('/operate/queues', (readings) => queuesView(readings))
  serve('/operate/oracle', async (readings) =>
    oracleView(await feedStates(db), readings, clock.now(), oracleMaxAgeMs),
  )
  serve('/operate/processes', async (readings) =>
    processesView(readings, await chainProgress(db), clock.now()),
  )
}
