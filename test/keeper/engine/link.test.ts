import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { afterEach, beforeEach, describe, it } from 'mocha'
import {
  createEngineClient,
  type EngineClient,
  type EngineClientPorts,
} from '../../../keeper/engine/link/client.ts'
import { FrameReader } from '../../../keeper/engine/link/frames.ts'
import { proofOf, type Role } from '../../../keeper/engine/link/messages.ts'
import { LINK_LIMITS, type ReceivedRequest } from '../../../keeper/engine/link/server.ts'
import type { Reply } from '../../../keeper/engine/owner.ts'
import { waitFor } from '../../support/patience.ts'
import { frameOf } from './support/frame-of.ts'
import {
  type Command,
  IDENTITY,
  KEYS,
  MemberFixture,
  monotonic,
  SILENT,
  TIMER,
} from './support/member-fixture.ts'

describe('the connection of a client to the engine', () => {
  let folder: string
  let first: MemberFixture
  let second: MemberFixture
  const clients: EngineClient[] = []

  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'engine-link-'))
    first = new MemberFixture(join(folder, 'a'), true)
    second = new MemberFixture(join(folder, 'b'), false)
    await first.listen()
    await second.listen()
  })
  afterEach(async () => {
    for (const client of clients.splice(0)) client.close()
    await first.stop()
    await second.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  function clientOf(own: Partial<EngineClientPorts> = {}): EngineClient {
    const client = createEngineClient({
      identity: IDENTITY,
      role: 'api',
      key: KEYS.get('api') as Buffer,
      members: [first.path, second.path],
      open: (path) => connect(path),
      timer: TIMER,
      monotonic,
      logger: SILENT,
      ...own,
    })
    clients.push(client)
    return client
  }

  it('when many commands are sent at once, each gets its own reply', async () => {
    const client = clientOf()
    const names = Array.from({ length: 500 }, (_, n) => `c${n}`)
    const replies = await Promise.all(names.map((name) => client.submit({ name }, 10_000)))
    expect(replies).to.deep.equal(names.map((name) => ({ answer: name })))
  })

  it('when the client chooses no queue, the engine derives class, account and deadline', async () => {
    const client = clientOf()
    const before = monotonic()
    await client.submit({ name: 'a', class: 'chain', account: 7 }, 600_000)
    const [{ class: of, account, deadline, command }] = first.received as [ReceivedRequest<Command>]
    expect([of, account, command]).to.deep.equal(['placement', 1, { name: 'a' }])
    expect(deadline).to.be.within(before, monotonic() + 60_000)
  })

  it('when a command has a trace id, the engine gets it beside the command, and refuses one that no api makes', async () => {
    const client = clientOf()
    await client.submit({ name: 'traced' }, 10_000, undefined, 'trace-1')
    await client.submit({ name: 'plain' }, 10_000)
    expect(first.received.map(({ command, traceId }) => [command, traceId])).to.deep.equal([
      [{ name: 'traced' }, 'trace-1'],
      [{ name: 'plain' }, undefined],
    ])
    const reply = await client.submit({ name: 'long' }, 200, undefined, 'x'.repeat(129))
    expect(reply).to.have.property('none')
    expect(first.received).to.have.length(2)
  })

  it('when the connection breaks after a command was sent, the repeated command is not executed again', async () => {
    const client = clientOf()
    let answer: (reply: Reply<unknown>) => void = () => {}
    first.answer = () =>
      new Promise((resolve) => {
        answer = resolve
      })
    const reply = client.submit({ name: 'once' }, 20_000)
    await waitFor(
      async () => first.received.length,
      (count) => count === 1,
      { everyMs: 5 },
    )
    first.cutConnections()
    answer({ answer: 'done' })
    expect(await reply).to.deep.equal({ answer: 'done' })
    expect(first.received).to.have.length(1)
  })

  it('when another member has become the owner, sent commands are unknown, and later ones reach it', async () => {
    const client = clientOf()
    first.answer = () => new Promise(() => {})
    const sent = client.submit({ name: 'sent' }, 20_000)
    await waitFor(
      async () => first.received.length,
      (count) => count === 1,
      { everyMs: 5 },
    )
    second.isOwner = true
    await first.stop()
    expect(await sent).to.deep.equal({ none: 'unknown' })
    expect(await client.submit({ name: 'later' }, 20_000)).to.deep.equal({ answer: 'later' })
    expect(second.received.map(({ command }) => command.name)).to.deep.equal(['later'])
  })

  it('when the owner hands over, commands under way are answered and no command is lost', async () => {
    const client = clientOf()
    await client.ready()
    let answer: (reply: Reply<unknown>) => void = () => {}
    first.answer = () =>
      new Promise((resolve) => {
        answer = resolve
      })
    const early = client.submit({ name: 'early' }, 20_000)
    await waitFor(
      async () => first.received.length,
      (count) => count === 1,
      { everyMs: 5 },
    )
    second.isOwner = true
    first.announce(false)
    const late = client.submit({ name: 'late' }, 20_000)
    answer({ answer: 'early' })
    expect(await early).to.deep.equal({ answer: 'early' })
    expect(await late).to.deep.equal({ answer: 'late' })
  })

  it('when the owner is frozen and keeps its connections, commands reach its successor, and are not sent to it twice', async () => {
    const client = clientOf()
    await client.ready()
    first.answer = () => new Promise(() => {})
    const sent = client.submit({ name: 'sent' }, 20_000)
    await waitFor(
      async () => first.received.length,
      (count) => count === 1,
      { everyMs: 5 },
    )
    second.token = 2
    second.announce(true)
    expect(await sent).to.deep.equal({ none: 'unknown' })
    // The former owner still states its ownership.
    first.announce(true)
    const later = Array.from({ length: 3 }, async (_, n) => {
      await sleep(n * 200)
      return client.submit({ name: `later ${n}` }, 20_000)
    })
    expect(await Promise.all(later)).to.deep.equal([0, 1, 2].map((n) => ({ answer: `later ${n}` })))
    expect(first.received).to.have.length(1)
  })

  it('when a member says nothing any more, its connection is closed and opened again', async () => {
    let opened = 0
    const client = clientOf({
      members: [first.path],
      open(path) {
        const socket = connect(path)
        opened += 1
        // The first connection is stuck: nothing arrives after the welcome.
        if (opened === 1) socket.once('data', () => setTimeout(() => socket.pause(), 200))
        return socket
      },
    })
    await client.ready()
    await sleep(400)
    expect(await client.submit({ name: 'a' }, 20_000)).to.deep.equal({ answer: 'a' })
    expect([opened, first.received.length]).to.deep.equal([2, 1])
  })

  it('when a fact is sent, the owner answers it and the followers have it too; a command reaches the owner alone', async () => {
    const client = clientOf()
    await client.ready()
    const hasBoth = await waitFor(
      async () => {
        expect(await client.inform({ name: 'fact' }, 20_000)).to.deep.equal({ answer: 'fact' })
        return second.received.length
      },
      (count) => count > 0,
      { everyMs: 5 },
    )
    expect(hasBoth).to.be.above(0)
    expect(await client.submit({ name: 'order' }, 20_000)).to.deep.equal({ answer: 'order' })
    const names = second.received.map(({ command }) => command.name)
    expect(new Set(names)).to.deep.equal(new Set(['fact']))
  })

  it('when no member is the owner within the budget, the command is reported as not executed', async () => {
    first.isOwner = false
    const client = clientOf()
    expect(await client.submit({ name: 'a' }, 300)).to.deep.equal({ none: 'not_executed' })
    expect([first.received, second.received]).to.deep.equal([[], []])
  })

  it('when the owner does not reply, the command is reported as unknown after its budget', async () => {
    const client = clientOf()
    await client.ready()
    first.answer = () => new Promise(() => {})
    expect(await client.submit({ name: 'a' }, 100)).to.deep.equal({ none: 'unknown' })
  })

  it('when a command has waited in the socket of a frozen owner for longer than its budget, it is not executed', async () => {
    const client = clientOf()
    await client.ready()
    const proceed = first.freeze()
    expect(await client.submit({ name: 'late' }, 50)).to.deep.equal({ none: 'unknown' })
    proceed()
    expect(await client.submit({ name: 'next' }, 20_000)).to.deep.equal({ answer: 'next' })
    expect(first.received.map(({ command }) => command.name)).to.deep.equal(['next'])
  })

  it('when a command is sent later than it arrived, the engine knows its arrival, and never a later one', async () => {
    const client = clientOf()
    await client.ready()
    const arrivedAt = monotonic() - 5_000
    await client.submit({ name: 'a' }, 20_000, arrivedAt)
    const before = monotonic()
    await client.submit({ name: 'b' }, 20_000)
    const [a, b] = first.received.map((one) => one.arrivedAt) as [number, number]
    // Client and member have one clock here: the estimate is behind it by the delay of a message.
    expect(a).to.be.within(arrivedAt - 2_000, arrivedAt)
    expect(b).to.be.within(before - 2_000, monotonic())
  })

  it('when a role may not send a command, it is refused and not executed', async () => {
    const refused = await clientOf().submit({ name: 'signed' }, 10_000)
    expect(refused).to.have.property('none', 'forbidden')
    const worker = clientOf({ role: 'worker', key: KEYS.get('worker') as Buffer })
    expect(await worker.submit({ name: 'signed' }, 10_000)).to.deep.equal({ answer: 'signed' })
    expect(first.received).to.have.length(1)
  })

  it('when a command is malformed, the reply names the field and the connection stays', async () => {
    const client = clientOf()
    const detail = 'name: expected a text'
    expect(await client.submit({ nam: 1 }, 10_000)).to.deep.equal({ none: 'invalid', detail })
    expect(await client.submit({ name: 'a' }, 10_000)).to.deep.equal({ answer: 'a' })
  })

  it('when more commands are open than the bound, further ones are refused at once', async () => {
    first.answer = () => new Promise(() => {})
    await second.stop()
    second = new MemberFixture(join(folder, 'c'), true, { ...LINK_LIMITS, maxPending: 3 })
    second.answer = first.answer
    await second.listen()
    const client = clientOf({ members: [second.path] })
    const replies = Array.from({ length: 4 }, (_, n) => client.submit({ name: `c${n}` }, 10_000))
    expect(await replies[3]).to.deep.equal({ none: 'overloaded' })
    expect(second.received).to.have.length(3)
  })

  for (const [name, own] of Object.entries({
    'another chain': { identity: { ...IDENTITY, chainId: 4326 } },
    'another incarnation': { identity: { ...IDENTITY, incarnation: 2 } },
    'another protocol': { identity: { ...IDENTITY, protocol: 0 } },
    'another key': { key: randomBytes(32) },
    'a role without a key': { role: 'operator' as Role },
  })) {
    it(`when a client has ${name}, none of its commands is executed`, async () => {
      expect(await clientOf(own).submit({ name: 'a' }, 300)).to.deep.equal({ none: 'not_executed' })
      expect(first.received).to.have.length(0)
    })
  }

  it('when a client has started after a migration, its commands are executed', async () => {
    const client = clientOf({ identity: { ...IDENTITY, schema: '0062' } })
    expect(await client.submit({ name: 'a' }, 10_000)).to.deep.equal({ answer: 'a' })
  })

  it('when an engine lacks the key of the role, the client sends no command', async () => {
    const impostor = createServer((socket) => {
      socket.on('error', () => {})
      const send = (message: object): void => {
        socket.write(frameOf(message))
      }
      send({ kind: 'challenge', ...IDENTITY, nonce: '00'.repeat(32) })
      socket.on('data', (chunk) => {
        impostorBytes.push(chunk)
        send({ kind: 'welcome', proof: '00'.repeat(32), member: 'x', token: 1 })
      })
    })
    const impostorBytes: Buffer[] = []
    const path = join(folder, 'impostor')
    impostor.listen(path)
    await once(impostor, 'listening')
    expect(await clientOf({ members: [path] }).submit({ name: 'secret' }, 300)).to.deep.equal({
      none: 'not_executed',
    })
    expect(Buffer.concat(impostorBytes).includes('secret')).to.equal(false)
    await new Promise((resolve) => impostor.close(resolve))
  })

  it('when a hello is replayed on another connection, its proof is refused', async () => {
    const reader = new FrameReader(1_000_000)
    const socket = connect(first.path)
    const [chunk] = (await once(socket, 'data')) as [Buffer]
    const [challenge] = reader.push(chunk) as [{ nonce: string }]
    const own = { ...IDENTITY, role: 'api' as Role, process: 'p', nonce: '11'.repeat(32) }
    const proof = proofOf(KEYS.get('api') as Buffer, 'client', { nonce: '22'.repeat(32) }, own)
    expect(challenge.nonce).to.not.equal('22'.repeat(32))
    socket.write(frameOf({ kind: 'hello', ...own, proof }))
    const [answer] = (await once(socket, 'data')) as [Buffer]
    expect(reader.push(answer)).to.deep.include({
      kind: 'refused',
      field: 'proof',
      received: 'another value',
      expected: 'proof of the api key',
    })
    await once(socket, 'close')
  })

  const hostile: Record<string, Buffer> = {
    'a frame above the limit': Buffer.from([0xff, 0xff, 0xff, 0xff]),
    'a frame that is not JSON': Buffer.from([0, 0, 0, 1, 0x7b]),
    'JSON that is not a hello': Buffer.from([0, 0, 0, 4, ...Buffer.from('null')]),
    'a command before the hello': Buffer.concat([
      Buffer.from([0, 0, 0, 20]),
      Buffer.from('{"kind":"command"   }').subarray(0, 20),
    ]),
    'text of another protocol': Buffer.from('GET / HTTP/1.1\r\n\r\n'),
  }
  for (const [name, bytes] of Object.entries(hostile)) {
    it(`when a peer sends ${name}, its connection is closed and others go on`, async () => {
      const client = clientOf()
      const socket = connect(first.path)
      socket.on('error', () => {})
      socket.resume()
      socket.write(bytes)
      await once(socket, 'close')
      expect(await client.submit({ name: 'a' }, 10_000)).to.deep.equal({ answer: 'a' })
    })
  }

  it('when a peer says nothing, its connection is closed after the time for the handshake', async () => {
    await second.stop()
    second = new MemberFixture(join(folder, 'd'), true, { ...LINK_LIMITS, handshakeMs: 50 })
    await second.listen()
    const socket = connect(second.path)
    socket.resume()
    await once(socket, 'close')
    await sleep(1)
  })
})
