/**
 * Unanswered placements of this process, by account. A later cancel waits for them, instead of missing orders that are
 * not verified or sent yet.
 */

/** One placement, or one batch. */
export interface Arrival {
  /** Resolves once every placement of the account that began before this one is sent, or rejected. */
  afterEarlier(): Promise<void>
  /** The command is sent, or rejected. */
  sent(): void
  /** The command is answered. Both may be called again without effect. */
  answered(): void
}

export interface ArrivingPlacements {
  begin(userId: number): Arrival
  /** Resolves once every placement of the account that has begun by now is sent, or rejected. */
  untilSent(userId: number): Promise<void>
  /** Resolves once every placement of the account that has begun by now is answered, and after `mostMs` at the latest. */
  untilAnswered(userId: number, mostMs: number): Promise<void>
}

interface Waiting {
  /** Later arrivals have higher numbers. */
  readonly number: number
  readonly sent: Promise<void>
  readonly answered: Promise<void>
}

export function createArrivingPlacements(): ArrivingPlacements {
  const byUser = new Map<number, Set<Waiting>>()
  let arrivals = 0
  const all = async (userId: number, stage: keyof Waiting): Promise<void> => {
    const own = byUser.get(userId)
    if (own !== undefined) await Promise.all([...own].map((waiting) => waiting[stage]))
  }
  return {
    begin(userId) {
      const sent = Promise.withResolvers<void>()
      const answered = Promise.withResolvers<void>()
      const number = ++arrivals
      const waiting: Waiting = { number, sent: sent.promise, answered: answered.promise }
      const own = byUser.get(userId) ?? new Set()
      byUser.set(userId, own.add(waiting))
      return {
        async afterEarlier() {
          await Promise.all([...own].filter((other) => other.number < number).map((other) => other.sent))
        },
        sent: sent.resolve,
        answered() {
          sent.resolve()
          answered.resolve()
          own.delete(waiting)
          if (own.size === 0 && byUser.get(userId) === own) byUser.delete(userId)
        },
      }
    },
    untilSent: (userId) => all(userId, 'sent'),
    async untilAnswered(userId, mostMs) {
      let timer: NodeJS.Timeout | undefined
      const late = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, mostMs).unref()
      })
      await Promise.race([all(userId, 'answered'), late])
      clearTimeout(timer)
    },
  }
}
