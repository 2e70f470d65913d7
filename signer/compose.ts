/** Wires a signer: one key, its checks, and the HTTP interface. */
import type { Millis } from '../domain/units.ts'
import { systemClock } from '../service/clock.ts'
import { createReadiness, serveHealth } from '../service/health.ts'
import { checkKeystores } from '../service/keys/key-settings.ts'
import type { Logger } from '../service/logger.ts'
import { createReportKey } from '../service/report-key.ts'
import type { Config } from './config.ts'
import { createMetrics } from './metrics.ts'
import { serveSigner } from './server.ts'

/** By its own clock, so that a publisher with a wrong clock gets no signatures. */
const clock = systemClock

export async function compose(config: Config, logger: Logger): Promise<{ stop(): Promise<void> }> {
  const { feeds, key: source, domain, secret, listener } = config
  await checkKeystores([source])
  const mostAhead = Math.max(...[...feeds.values()].map(({ maxAhead }) => maxAhead))
  const key = createReportKey({
    key: source,
    domain,
    clock,
    rulesOf: (feedId) => feeds.get(feedId) ?? null,
    // Before it was restarted it may have signed other prices for times up to this one.
    after: (clock.now() + mostAhead) as Millis,
  })
  const metrics = createMetrics()
  const server = await serveSigner({
    ...{ listener, secret, key, logger },
    onAnswers(answers) {
      for (const answer of answers) metrics.answered(answer)
    },
  })
  const readiness = createReadiness([], logger)
  const health = await serveHealth({ ...config.internal, registry: metrics.registry, readiness, logger })
  logger.info(
    { address: key.address, key: source.place, feeds: feeds.size, port: server.port },
    'signer started',
  )
  return {
    async stop() {
      await server.close()
      await health.close()
    },
  }
}
