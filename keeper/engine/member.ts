/**
 * An engine process: it follows the journal, and takes the next token and owns the journal once the owner's lease has
 * expired. It never follows again: a new process does.
 */
import type { CommandClass } from './fair-queue.ts'
import { createFollower, type Follower, type FollowerFault } from './follower.ts'
import {
  createOwner,
  type EndReason,
  type Owner,
  type OwnerOptions,
  type OwnerPorts,
  type Reply,
  type Request,
} from './owner.ts'
import { keepOwnership, type Ownership, type OwnershipOptions, watchLease } from './ownership.ts'
import { type Group, JournalUnavailable, type Lease, pause } from './ports.ts'

export interface MemberPorts<Command, Row, Answer> extends OwnerPorts<Command, Row, Answer> {
  readonly lease: Lease
  /** The member has ended and must be discarded. */
  readonly onEnd: (reason: EndReason | FollowerFault) => void
  /** The member is the owner from now on. */
  readonly onOwner: (token: number) => void
}

export interface MemberOptions extends OwnerOptions, OwnershipOptions {
  /** Pause of a follower at the journal's head. */
  readonly followMs: number
}

export interface Member<Command, Answer> {
  /** Null while the member is not the owner, or hands over. */
  submit(request: Request<Command>): Promise<Reply<Answer>> | null
  /** Commands of the class that wait; 0 while the member is not the owner. */
  waiting(of: CommandClass): number
  /** Hands over: answers what it has, releases the lease and ends. */
  stop(): Promise<void>
  /** Number of the last group that the member has applied and knows to be stored, and the digest of the state after it. */
  stored(): { readonly head: number; readonly digest: string }
  /** Milliseconds since the member has last seen the journal's head; 0 for the owner. */
  lagMs(): number
}

/** Readings of the lease per life while a member applies the groups that it is behind. */
const READINGS = 8

export function startMember<Command, Row, Answer>(
  ports: MemberPorts<Command, Row, Answer>,
  options: MemberOptions,
  start: { readonly head: number },
): Member<Command, Answer> {
  const { machine, journal, tables, clock, timer, logger, lease } = ports
  const follower: Follower<Row> = createFollower(machine, journal, logger, start)
  let owner: Owner<Command, Answer> | null = null
  let ownership: Ownership | null = null
  let isEnded = false
  let isStopping = false
  let caughtUpAt = clock.monotonic()

  function end(reason: EndReason | FollowerFault): void {
    if (isEnded) return
    isEnded = true
    ports.onEnd(reason)
  }

  /** Repeats the reading until the journal is available. */
  async function available<Value>(read: () => Promise<Value>): Promise<Value | null> {
    while (!isEnded) {
      try {
        return await read()
      } catch (err) {
        if (!(err instanceof JournalUnavailable)) throw err
        logger.warn({ err }, 'journal not read; will retry')
        await pause(timer, options.followMs)
      }
    }
    return null
  }

  const watch = watchLease(clock, options)
  let watchedAt = clock.monotonic()

  /** The life of a lease is counted from the first reading that shows its renewal, also while the member is far behind. */
  async function watchWhileBehind(): Promise<void> {
    const now = clock.monotonic()
    if (now - watchedAt < options.lifeMs / READINGS) return
    watchedAt = now
    try {
      watch.isExpired(await lease.read())
    } catch (err) {
      logger.warn({ err }, 'lease not read; will retry')
    }
  }

  /** Applies groups until there are no more. Returns their rows if `isKeeping`. */
  async function catchUp(
    advance: () => Promise<readonly Group<Row>[]> = follower.advance,
    isKeeping = false,
  ): Promise<readonly Row[]> {
    const rows: Row[] = []
    while (!isEnded && follower.fault === null) {
      const readAt = clock.monotonic()
      const applied = await available(advance)
      if (applied === null || applied.length === 0) {
        caughtUpAt = readAt
        break
      }
      if (isKeeping) for (const group of applied) rows.push(...group.rows)
      if (ownership === null) await watchWhileBehind()
    }
    return rows
  }

  /**
   * Applies the journal to its end, and notes what the tables of readers lack. The state must be theirs before: a database that replicates
   * synchronously shows a write of them before it is durable.
   */
  async function catchUpToHead(): Promise<{ readonly written: number; readonly tail: readonly Row[] }> {
    await catchUp()
    const written = (await available(() => tables.written())) ?? 0
    if (follower.fault === null && !isEnded && written !== follower.head) {
      logger.error(
        { written, head: follower.head },
        'the tables of readers lack what this member has applied',
      )
      end({ fault: 'history', number: written })
    }
    tables.begin()
    const tail = await catchUp(follower.advanceToHead, true)
    return { written, tail }
  }

  /** The token of a new ownership; null while another member may own the journal. */
  async function acquire(): Promise<number | null> {
    try {
      const reading = await lease.read()
      watchedAt = clock.monotonic()
      return watch.isExpired(reading) ? await lease.take(reading) : null
    } catch (err) {
      logger.warn({ err }, 'lease not read; will retry')
      return null
    }
  }

  async function follow(): Promise<void> {
    while (!isEnded) {
      await catchUp()
      if (follower.fault !== null) {
        end(follower.fault)
        return
      }
      const askedAt = clock.monotonic()
      const token = await acquire()
      if (token !== null) {
        await own(token, askedAt)
        return
      }
      await pause(timer, options.followMs)
    }
  }

  /** The token is this member's: no other append can follow, so that the journal's head is final. */
  async function own(token: number, askedAt: number): Promise<void> {
    if (isEnded) return
    ownership = keepOwnership({ lease, clock, timer, logger }, options, { token, askedAt }, () => {
      if (owner === null) end('ownership lost')
      else owner.end('ownership lost')
    })
    const { written, tail } = await catchUpToHead()
    await available(() => follower.verifyHead())
    if (isEnded) {
      ownership.stop()
      return
    }
    if (follower.fault !== null) {
      ownership.stop()
      end(follower.fault)
      return
    }
    await proven(ownership)
    if (isEnded) return
    owner = createOwner(ports, ownership, options, { head: follower.head, written, tail }, end)
    logger.info({ token, head: follower.head }, 'engine owns the journal')
    ports.onOwner(token)
  }

  /** A member that caught up for longer than the lease's life may have lost it: clients must not be sent to it. Never resolves once that is known. */
  const proven = (own: Ownership): Promise<void> => new Promise((resolve) => own.whenSafe(resolve))

  follow().catch((err: unknown) => {
    logger.error({ err }, 'engine failed')
    ownership?.stop()
    end('stopped')
  })

  return {
    submit: (request) => (owner === null || isEnded || isStopping ? null : owner.submit(request)),
    waiting: (of) => owner?.waiting(of) ?? 0,
    async stop() {
      isStopping = true
      if (owner !== null && ownership !== null && !isEnded) {
        await owner.drain()
        const { token } = ownership
        owner.end('stopped')
        await lease.release(token).catch((err: unknown) => logger.warn({ err }, 'lease not released'))
      }
      ownership?.stop()
      end('stopped')
    },
    stored: () => owner?.stored() ?? { head: follower.head, digest: machine.digest() },
    lagMs: () => (owner === null ? clock.monotonic() - caughtUpAt : 0),
  }
}
