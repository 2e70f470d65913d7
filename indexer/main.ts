/** The indexer: chain to log, log to read model. */
import { startIndexer } from './compose.ts'
import { readConfig } from './config.ts'

/** Longer than a chunk or a block takes; shorter than a supervisor's patience. */
const DRAIN_MS = 10_000

async function main(): Promise<void> {
  const indexer = await startIndexer(readConfig(process.env))
  const asked = Promise.withResolvers<void>()
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => asked.resolve())
  try {
    await Promise.race([asked.promise, indexer.failed])
  } finally {
    setTimeout(() => process.exit(1), DRAIN_MS).unref()
    await indexer.stop()
  }
}

try {
  await main()
} catch (error) {
  console.error(`indexer: ${(error as Error).message}`)
  process.exitCode = 1
}
