/** Runs the engine under faults, driven by a seed: members, a database and traders on virtual time. */

import type { CommandClass } from '../../keeper/engine/fair-queue.ts'
import type { FollowerFault } from '../../keeper/engine/follower.ts'
import type { Member } from '../../keeper/engine/member.ts'
import type { EndReason, Reply } from '../../keeper/engine/owner.ts'
import { type Random, randomOf } from '../random.ts'
import { SimulatedDatabase } from './database.ts'
import type { EngineCode } from './engine-code.ts'
import { tablesFollow } from './group-laws.ts'
import { Host } from './host.ts'
import type { Clients, Scenario } from './scenario.ts'
import { Scheduler } from './scheduler.ts'

export interface RunOptions {
  readonly seed: number
  /** Events after which the faults end. */
  readonly events: number
}

export interface RunOutcome {
  readonly events: number
  readonly answers: number
  readonly groups: number
  readonly takeovers: number
  readonly violations: readonly string[]
}

const OPTIONS = {
  turnMs: 5,
  maxGroup: 64,
  lifeMs: 300,
  driftMs: 30,
  followMs: 20,
}
const DEADLINE_MS = 300
/** Time from the end of a member to its restart. */
const RESTART_MS = 40
/** Time after the last fault, enough for a takeover and repetitions of all open commands. */
const QUIET_MS = 4000

interface Process<Command, Answer> {
  readonly host: Host
  readonly member: Member<Command, Answer>
}

/** Reasons with which a member may end because of injected faults alone. */
const EXPECTED: ReadonlySet<unknown> = new Set([
  'ownership lost',
  'history lost',
  'clock jumped',
  'stopped',
  'history',
])

const isExpected = (reason: EndReason | FollowerFault): boolean =>
  EXPECTED.has(typeof reason === 'string' ? reason : reason.fault)

class Cluster<Command, Row, Answer> {
  readonly scheduler = new Scheduler()
  readonly random: Random
  readonly clock = { offset: 1_000_000 }
  readonly database: SimulatedDatabase<Row>
  readonly clients: Clients<Command, Answer>
  readonly faults: string[] = []
  /** Commands in order of arrival at an owner. */
  readonly arrivals: Command[] = []
  /** Commands that an owner has received and not answered. */
  readonly unanswered = new Map<Command, Host>()
  takeovers = 0
  /** Commands whose senders read the tables afterwards. */
  readonly #readBack = new Map<Command, boolean>()
  /** Killed hosts. Commands that they had received are lost. */
  readonly #killed = new Set<Host>()
  #processes: (Process<Command, Answer> | null)[] = [null, null, null]
  #owner: { readonly slot: number; readonly process: Process<Command, Answer> } | null = null
  readonly #code: EngineCode
  readonly #scenario: Scenario<Command, Row, Answer>

  constructor(code: EngineCode, scenario: Scenario<Command, Row, Answer>, seed: number) {
    this.#code = code
    this.#scenario = scenario
    this.random = randomOf(seed)
    this.database = new SimulatedDatabase(
      { scheduler: this.scheduler, random: this.random, clock: this.clock, errors: code },
      (row) => scenario.isPoison(row),
    )
    this.clients = scenario.clients(this.scheduler, this.random, (command, of) => this.#submit(command, of))
  }

  get neverAnswered(): readonly Command[] {
    return [...this.unanswered].filter(([, host]) => !this.#killed.has(host)).map(([command]) => command)
  }

  start(): void {
    for (const slot of this.#processes.keys()) this.#startProcess(slot)
    this.clients.start(this.random.pick([5, 20, 80]))
  }

  #startProcess(slot: number): void {
    const host = new Host(`engine${slot}`, this.scheduler, this.clock, this.random() * 1e6)
    const silent = (): void => {}
    const machine = this.#scenario.newMachine()
    const genesis = machine.position()
    const own: { process: Process<Command, Answer> | null } = { process: null }
    const member = this.#code.startMember<Command, Row, Answer>(
      {
        machine,
        journal: this.database.journalOf(host),
        tables: this.database.tablesOf(
          host,
          () => machine.position() - genesis,
          (law) => this.faults.push(law),
        ),
        isReadBack: (command) => this.#readBack.get(command) === true,
        lease: this.database.leaseOf(host),
        clock: host,
        timer: host,
        logger: { debug: silent, info: silent, warn: silent, error: silent },
        observer: {
          waited: silent,
          decided: silent,
          written: silent,
          stored: (commands) => {
            if (commands > OPTIONS.maxGroup) this.faults.push(`a group has ${commands} commands`)
          },
        },
        onOwner: () => {
          this.takeovers += 1
          if (own.process !== null) this.#owner = { slot, process: own.process }
        },
        onEnd: (reason) => this.#ended(slot, host, reason),
      },
      OPTIONS,
      { head: 0 },
    )
    own.process = { host, member }
    this.#processes[slot] = own.process
  }

  #ended(slot: number, host: Host, reason: EndReason | FollowerFault): void {
    if (!isExpected(reason)) this.faults.push(JSON.stringify(reason))
    host.kill()
    this.scheduler.after(RESTART_MS, () => {
      if (this.#processes[slot]?.host === host) this.#startProcess(slot)
    })
  }

  /** Sends to the last owner, or to a member that may still consider itself the owner. */
  #submit(command: Command, of: CommandClass): Promise<Reply<Answer>> | null {
    const isAtAny = this.random.chance(0.25)
    const process = isAtAny ? this.random.pick(this.#processes) : (this.#owner?.process ?? null)
    if (process === null || process.host.isDead) return null
    const { host, member } = process
    return new Promise((resolve) => {
      host.deliver(() => {
        if (!this.#readBack.has(command)) this.#readBack.set(command, this.random.chance(0.3))
        const stored = this.database.visible.groups
        const replied = member.submit({
          command,
          class: of,
          account: this.#scenario.accountOf(command),
          deadline: host.monotonic() + DEADLINE_MS,
        })
        if (replied === null) return
        this.arrivals.push(command)
        this.unanswered.set(command, host)
        void replied.then((reply) => {
          this.unanswered.delete(command)
          if ('answer' in reply && this.#readBack.get(command) === true) this.#checkReadBack(command, stored)
          host.deliver(() => resolve(reply))
        })
      })
    })
  }

  /** Checks that the tables contain at least the groups stored when the command arrived. */
  #checkReadBack(command: Command, stored: number): void {
    const { written } = this.database.visible
    if (written < stored)
      this.faults.push(
        `tables: ${JSON.stringify(command)} was answered at ${written}, behind group ${stored}`,
      )
  }

  injectFault(): void {
    const { random, scheduler, database } = this
    const slot = random.chance(0.6) && this.#owner !== null ? this.#owner.slot : random.between(0, 2)
    const process = this.#processes[slot] ?? null
    const lasting = (ms: number, begin: () => void, end: () => void): void => {
      begin()
      scheduler.after(ms, end)
    }
    const kinds: (() => void)[] = [
      () => {
        if (process === null) return
        process.host.kill()
        this.#killed.add(process.host)
        this.#processes[slot] = null
        scheduler.after(random.between(1, 400), () => {
          if (this.#processes[slot] === null) this.#startProcess(slot)
        })
      },
      () => {
        if (process === null) return
        lasting(
          random.between(1, 900),
          () => process.host.freeze(),
          () => process.host.thaw(),
        )
      },
      () => database.failOver(),
      // A lagging replica, lost requests, and a failover during both.
      () => {
        lasting(
          120,
          () => {
            database.faults.replicationMs = 60
          },
          () => {
            database.faults.replicationMs = 0.5
          },
        )
        lasting(
          120,
          () => {
            database.faults.lossRate = 0.5
          },
          () => {
            database.faults.lossRate = 0
          },
        )
        scheduler.after(random.between(20, 110), () => database.failOver())
      },
      () =>
        lasting(
          random.between(5, 300),
          () => {
            database.faults.lossRate = 0.3
          },
          () => {
            database.faults.lossRate = 0
          },
        ),
      () =>
        lasting(
          random.between(5, 200),
          () => {
            database.faults.isFull = true
          },
          () => {
            database.faults.isFull = false
          },
        ),
      () =>
        lasting(
          random.between(5, 300),
          () => {
            database.faults.replicationMs = 40
          },
          () => {
            database.faults.replicationMs = 0.5
          },
        ),
      () =>
        lasting(
          random.between(50, 1200),
          () => database.faults.partitioned.add(`engine${slot}`),
          () => database.faults.partitioned.delete(`engine${slot}`),
        ),
      () =>
        lasting(
          random.between(50, 400),
          () => {
            this.clock.offset += 5000
          },
          () => {
            this.clock.offset -= 5000
          },
        ),
      () => void process?.member.stop(),
    ]
    random.pick(kinds)()
  }
}

export async function runExchange<Command, Row, Answer>(
  code: EngineCode,
  scenario: Scenario<Command, Row, Answer>,
  { seed, events }: RunOptions,
): Promise<RunOutcome> {
  const cluster = new Cluster(code, scenario, seed)
  const { scheduler, random, clients, database } = cluster
  cluster.start()
  const pauseMs = random.pick([30, 120, 500])
  const disturb = (): void => {
    scheduler.after(-Math.log(1 - random()) * pauseMs, () => {
      if (clients.isQuiet) return
      cluster.injectFault()
      disturb()
    })
  }
  scheduler.after(450, disturb)
  await scheduler.runUntil(Number.POSITIVE_INFINITY, events)
  clients.isQuiet = true
  await scheduler.runUntil(scheduler.now + QUIET_MS)
  const probe = clients.probe()
  await scheduler.runUntil(scheduler.now + QUIET_MS)
  if (!probe.isDone()) cluster.faults.push('no command is accepted after the faults have ended')
  return {
    events: scheduler.ran,
    answers: clients.attempts.filter(({ reply }) => reply !== null).length,
    groups: database.durableGroups.length,
    takeovers: cluster.takeovers,
    violations: [
      ...tablesFollow(database.durableGroups, database.durableTables),
      ...scenario.check({
        groups: database.durableGroups,
        attempts: clients.attempts,
        faults: cluster.faults,
        arrivals: cluster.arrivals,
        neverAnswered: cluster.neverAnswered,
      }),
    ],
  }
}
