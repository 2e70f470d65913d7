/** The means by which a campaign injects faults, each by itself. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer as createHttpServer } from 'node:http'
import { type AddressInfo, connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { afterEach, describe, it } from 'mocha'
import { freePort } from '../../stack/ports.ts'
import { skipBecause } from '../e2e/support/guide.ts'
import { Clocks } from './clock.ts'
import { Disks } from './disks.ts'
import { Link } from './link.ts'
import { FaultyNode } from './node.ts'

const undo: (() => unknown)[] = []
afterEach(async () => {
  for (const step of undo.splice(0).toReversed()) await step()
})

const folder = (): string => {
  const path = mkdtempSync(join(tmpdir(), 'cb-faults-'))
  undo.push(() => rmSync(path, { recursive: true, force: true }))
  return path
}

describe('a link between two processes', () => {
  /** A server that returns what it receives, behind a link. */
  async function echo() {
    const server = createServer((socket) => socket.pipe(socket))
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const own = await freePort()
    const link = await Link.start(own, (server.address() as AddressInfo).port, () => 0)
    const client = connect(own, '127.0.0.1')
    let received = ''
    client.on('data', (bytes) => {
      received += String(bytes)
    })
    undo.push(
      () => server.close(),
      () => link.close(),
      () => client.destroy(),
    )
    return { link, client, received: () => received }
  }

  it('when it is cut, nothing passes, and everything passes in order once it is whole', async () => {
    const { link, client, received } = await echo()
    client.write('a')
    await sleep(100)
    link.set({ isCut: true })
    client.write('b')
    await sleep(20)
    client.write('c')
    await sleep(200)
    expect(received()).to.equal('a')
    link.set({ isCut: false })
    await sleep(100)
    expect(received()).to.equal('abc')
  })

  it('when it is slow, bytes arrive after the delay of both directions', async () => {
    const { link, client, received } = await echo()
    link.set({ delayMs: 150 })
    client.write('a')
    await sleep(200)
    expect(received()).to.equal('')
    await sleep(250)
    expect(received()).to.equal('a')
  })
})

describe('a faulty node', () => {
  const RECEIPT = { transactionHash: '0x01', status: '0x1' }

  /** Counts its requests. */
  async function node() {
    const methods: string[] = []
    const server = createHttpServer(async (request, response) => {
      const { method, id } = JSON.parse(await text(request)) as { method: string; id: number }
      methods.push(method)
      response.end(JSON.stringify({ jsonrpc: '2.0', id, result: RECEIPT }))
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const faulty = await FaultyNode.start(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
    undo.push(
      () => server.close(),
      () => faulty.close(),
    )
    const ask = async (method: string, limitMs = 2_000): Promise<unknown> => {
      const body = JSON.stringify({ jsonrpc: '2.0', id: 7, method, params: ['0x01'] })
      const signal = AbortSignal.timeout(limitMs)
      const answer = await fetch(faulty.url, { method: 'POST', body, signal })
      return ((await answer.json()) as { result: unknown }).result
    }
    return { faulty, methods, ask }
  }

  it('when it lies, a receipt is there once and then missing, until it is honest again', async () => {
    const { faulty, ask } = await node()
    faulty.set('lying')
    expect(await ask('eth_getTransactionReceipt')).to.deep.equal(RECEIPT)
    expect(await ask('eth_getTransactionReceipt')).to.equal(null)
    faulty.set('honest')
    expect(await ask('eth_getTransactionReceipt')).to.deep.equal(RECEIPT)
  })

  it('when it is silent, a request has no answer', async () => {
    const { faulty, methods, ask } = await node()
    faulty.set('silent')
    const problem = await ask('eth_blockNumber', 200).catch((error: Error) => error.name)
    expect(problem).to.equal('TimeoutError')
    expect(methods).to.deep.equal([])
  })

  it('when it repeats, the node behind it gets each request twice', async () => {
    const { faulty, methods, ask } = await node()
    faulty.set('repeating')
    await ask('eth_blockNumber')
    expect(methods).to.deep.equal(['eth_blockNumber', 'eth_blockNumber'])
  })
})

describe('a clock that a campaign steps', () => {
  it('when the file of a process changes, its clock is ahead, in every way of reading it', async () => {
    const clocks = new Clocks(join(folder(), 'clocks'))
    const program = `
      const print = () => console.log(JSON.stringify([Date.now(), new Date().getTime(), new Date(5).getTime()]))
      process.stdin.once('data', () => setTimeout(() => { print(); process.exit() }, 300))
    `
    const env = { ...process.env, ...clocks.variables('api 1') }
    const child = spawn(process.execPath, ['-e', program], { env, stdio: ['pipe', 'pipe', 'inherit'] })
    const output = text(child.stdout)
    clocks.set('api 1', -4_000)
    child.stdin.write('\n')
    const [called, constructed, fixed] = JSON.parse(await output) as [number, number, number]
    for (const time of [called, constructed]) expect(time - Date.now()).to.be.closeTo(-4_000, 1_000)
    expect(fixed).to.equal(5)
  })
})

describe('a bounded disk', () => {
  it('when it is full, a write fails, and succeeds once it is freed', async function () {
    const root = folder()
    const disk = join(root, 'disk')
    const disks = Disks.mount(root, [[disk, 1]])
    undo.push(() => disks.remove())
    if (disks.problem !== null) return skipBecause(this, disks.problem)
    const write = (): void => writeFileSync(join(disk, 'file'), Buffer.alloc(8_192))
    disks.fill(disk)
    expect(write).to.throw('ENOSPC')
    disks.free(disk)
    write()
  })
})
