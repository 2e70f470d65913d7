/** A lease whose owner leaves its fences to the next one: otherwise that one must refuse all placements that apis have received before. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import type pg from 'pg'
import { readHandover, storeHandover } from '../../db/engine-handovers.ts'
import type { Logger } from '../../service/logger.ts'
import type { Attempts } from './attempts.ts'
import type { Lease } from './ports.ts'

export interface HandoverPorts {
  readonly pool: pg.Pool
  readonly attempts: Pick<Attempts, 'inherit' | 'left'>
  readonly logger: Pick<Logger, 'warn'>
}

/** The lease is taken and released also if the handover cannot be read or stored. */
export function handedOver(lease: Lease, { pool, attempts, logger }: HandoverPorts): Lease {
  return {
    ...lease,
    async take(seen) {
      const token = await lease.take(seen)
      if (token === null) return null
      const handover = await readHandover(pool, seen.token).catch((err: unknown) => {
        logger.warn({ err }, 'handover of the owner before not read; earlier placements are not executed')
        return null
      })
      attempts.inherit(handover)
      return token
    },
    async release(token) {
      // The answers of the drained commands have set their fences by then.
      await nextTurn()
      const handover = attempts.left()
      if (handover !== null)
        await storeHandover(pool, token, handover).catch((err: unknown) =>
          logger.warn({ err }, 'handover not stored; the next owner does not execute earlier placements'),
        )
      await lease.release(token)
    },
  }
}
