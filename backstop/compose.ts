/** Wires the process: the client of the backstop's account, and a turn per interval. */
import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from '../client/client.ts'
import type { Signer } from '../client/signers/signer.ts'
import { toHex } from '../domain/hex.ts'
import { personalPreimage } from '../domain/orders/order-hash.ts'
import { systemClock } from '../service/clock.ts'
import { type Check, createReadiness, serveHealth } from '../service/health.ts'
import { checkKeystores } from '../service/keys/key-settings.ts'
import type { KeySource } from '../service/keys/key-source.ts'
import type { Logger } from '../service/logger.ts'
import type { RunningProcess } from '../service/process.ts'
import { closePositions } from './closer.ts'
import type { Config } from './config.ts'
import { createMetrics } from './metrics.ts'

/** The session key as the signer of orders. */
export function orderSignerOf({ address, sign }: KeySource): Signer {
  const preimageOf = personalPreimage()
  return { address, signDigest: async (digest) => toHex(await sign(preimageOf(digest).slice())) }
}

export async function compose(config: Config, logger: Logger): Promise<RunningProcess> {
  const { baseUrl, account, sessionKey, apiKey, intervalMs, rules } = config
  await checkKeystores([sessionKey])
  const client = new Client({ baseUrl, apiKey, address: account, orderSigner: orderSignerOf(sessionKey) })
  const metrics = createMetrics()
  const stopping = new AbortController()
  let hasAnswer = false

  async function turn(): Promise<void> {
    try {
      await closePositions({
        ...{ client, rules, intervalMs, logger, clock: systemClock },
        onOrder: ({ symbol }) => metrics.ordered(symbol),
      })
      hasAnswer = true
    } catch (err) {
      hasAnswer = false
      metrics.failed()
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
  const health = await serveHealth({ ...config.internal, registry: metrics.registry, readiness, logger })
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
