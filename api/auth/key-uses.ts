/** Records when API keys were last used, to the minute, and never on the path of a request. */
import type { Logger } from 'pino'
import { type KeyUse, recordUses } from '../../db/api-keys.ts'
import type { Db } from '../../db/client.ts'

export interface KeyUses {
  note(use: KeyUse): void
  /** Stores the noted uses. */
  flush(): Promise<void>
  stop(): Promise<void>
}

const FLUSH_MS = 5_000
/** Maximum uses that wait for the next flush. Further uses are dropped, because the next minute records them again. */
const MAX_PENDING = 10_000

export function createKeyUses(db: Db, logger: Logger): KeyUses {
  const pending = new Map<string, KeyUse>()
  const flush = async (): Promise<void> => {
    if (pending.size === 0) return
    const uses = [...pending.values()]
    pending.clear()
    await recordUses(db, uses).catch((err: unknown) => logger.warn({ err }, 'failed to record uses of keys'))
  }
  const timer = setInterval(() => void flush(), FLUSH_MS)
  timer.unref()
  return {
    note(use) {
      if (pending.size < MAX_PENDING) pending.set(use.keyHash.toString('latin1'), use)
    },
    flush,
    async stop() {
      clearInterval(timer)
      await flush()
    },
  }
}
