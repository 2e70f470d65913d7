/** Wires the process: the client of the backstop's account, and a turn per interval. */
import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from '../client/client.ts'
import { sessionSigner } from '../client/signing.ts'
import { systemClock } from '../service/clock.ts'
import { type Check, createReadiness, serveHealth } from '../service/health.ts'
import type { Logger } from '../service/logger.ts'
import { createRegistry } from '../service/metrics.ts'
import type { RunningProcess } from '../service/process.ts'
import { closePositions } from './closer.ts'
import type { Config } from './config.ts'

export async function compose(config: Config, logger: Logger): Promise<RunningProcess> {
  const { baseUrl, account, sessionKey, apiKey, intervalMs, rules } = config
  const client = new Client({ baseUrl, apiKey, address: account, orderSigner: sessionSigner(sessionKey) })
  const { registry, instruments } = createRegistry()
  const orders = instruments.counter('backstop_orders_total', 'Closing orders placed', ['market'])
  const failures = instruments.counter('backstop_failed_turns_total', 'Turns in which a market failed')
  const stopping = new AbortController()
  let hasAnswer = false

  async function turn(): Promise<void> {
    try {
      await closePositions({
        ...{ client, rules, intervalMs, logger, clock: systemClock },
        onOrder: ({ symbol }) => orders.inc({ market: symbol }),
      })
      hasAnswer = true
    } catch (err) {
      hasAnswer = false
      failures.inc()
      logger.warn({ err }, 'closing inherited positions failed; will retry')
    }
  }
  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      await turn()
      await sleep(intervalMs, undefined, { signal: stopping.signal }).catch(() => {})
    }
  }

  const api: Check = { name: 'api', check: async () => hasAnswer || 'no_response' }
  const readiness = createReadiness([api], logger)
  const health = await serveHealth({ ...config.internal, registry, readiness, logger })
  logger.info({ account, port: health.port, ...rules, interval_ms: intervalMs }, 'backstop started')
  const ended = run()
  return {
    async stop() {
      stopping.abort()
      await ended
      await health.close()
    },
  }
}
