/** The order of an account's commands on their way to the engine: each is sent after those before it, although some have to be looked up first. */

export interface CommandTurn {
  /** Resolves once every earlier command of the account has been sent, or has ended. */
  readonly begins: Promise<void>
  /** The command is being sent; later commands may follow. Repeated calls have no effect. */
  sent(): void
  /** Resolves once every earlier placement of the account has ended. */
  afterPlacements(): Promise<void>
  /** The command is answered. */
  ended(): void
}

export interface AccountOrder {
  begin(userId: number, isPlacement: boolean): CommandTurn
}

interface Account {
  /** When the newest command has been sent. */
  newest: Promise<void>
  /** Ends of the placements that are not answered. */
  readonly placements: Set<Promise<void>>
  /** Commands that are not answered. */
  open: number
}

export function createAccountOrder(): AccountOrder {
  const accounts = new Map<number, Account>()

  return {
    begin(userId, isPlacement) {
      const account = accounts.get(userId) ?? { newest: Promise.resolve(), placements: new Set(), open: 0 }
      accounts.set(userId, account)
      account.open++
      const sent = Promise.withResolvers<void>()
      const ended = Promise.withResolvers<void>()
      const begins = account.newest
      const earlier = [...account.placements]
      account.newest = begins.then(() => sent.promise)
      if (isPlacement) account.placements.add(ended.promise)
      return {
        begins,
        sent: sent.resolve,
        afterPlacements: async () => {
          await Promise.all(earlier)
        },
        ended() {
          sent.resolve()
          ended.resolve()
          account.placements.delete(ended.promise)
          account.open--
          if (account.open === 0) accounts.delete(userId)
        },
      }
    },
  }
}
