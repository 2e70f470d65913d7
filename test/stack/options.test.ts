import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { expect } from 'chai'
import { after, describe, it } from 'mocha'
import { requirePort } from '../../stack/choose-port.ts'
import { dataDirAt, writePrivate } from '../../stack/data-dir.ts'
import { loadKeys } from '../../stack/keys.ts'
import { lockDataDir } from '../../stack/lock.ts'
import { readOptions } from '../../stack/options.ts'

const parent = mkdtempSync(join(tmpdir(), 'clearbatch-stack-'))
const temporary = () => dataDirAt(mkdtempSync(join(parent, 'data-')))

after(() => rmSync(parent, { recursive: true }))

describe('stack/options', () => {
  it('when no flag is given, it returns the documented defaults', () => {
    expect(readOptions([])).to.deep.equal({
      port: 8080,
      dataDir: resolve('.clearbatch'),
      fresh: false,
      bots: true,
      page: true,
      calendar: 'ALWAYS_OPEN',
    })
  })

  it('when every flag is given, it returns each value', () => {
    const options = readOptions(['--port', '9000', '--data-dir=/tmp/x', '--fresh', '--no-bots', '--calendar'])
    expect(options).to.deep.equal({
      port: 9000,
      dataDir: '/tmp/x',
      fresh: true,
      bots: false,
      page: true,
      calendar: 'NYSE',
    })
  })

  it('when --always-open and --calendar are given together, it throws', () => {
    expect(readOptions(['--always-open']).calendar).to.equal('ALWAYS_OPEN')
    expect(() => readOptions(['--always-open', '--calendar'])).to.throw(
      '--calendar and --always-open exclude each other',
    )
  })

  it('when a flag is unknown or a port is out of range, it throws and names the valid flags', () => {
    expect(() => readOptions(['--prot', '1']))
      .to.throw('--prot')
      .with.property('message')
      .that.includes('--data-dir')
    expect(() => readOptions(['--port', '70000'])).to.throw(
      '--port must be a port number from 0 to 65535, not 70000',
    )
  })
})

describe('stack/choose-port', () => {
  it('when the port is in use, it throws and names the port', async () => {
    const server = createServer().listen(0, '127.0.0.1')
    await new Promise((listening) => server.once('listening', listening))
    const address = server.address()
    const port = typeof address === 'object' && address !== null ? address.port : 0
    let message = ''
    await requirePort(port).catch((error: Error) => {
      message = error.message
    })
    server.close()
    expect(message).to.include(`port ${port} is in use`)
  })
})

function failureOf(attempt: () => unknown): Error {
  try {
    attempt()
  } catch (error) {
    return error as Error
  }
  throw new Error('nothing was refused')
}

describe('stack/data-dir', () => {
  it('when a stack runs on the folder, a second lock throws and names the process', () => {
    const dir = temporary()
    const unlock = lockDataDir(dir)
    expect(() => lockDataDir(dir)).to.throw(
      `a stack is running on ${dir.path} already (process ${process.pid})`,
    )
    unlock()
    lockDataDir(dir)()
  })

  it('when the owner of the lock was killed, it takes the lock over', () => {
    const dir = temporary()
    writeFileSync(dir.lock, '999999999')
    const unlock = lockDataDir(dir)
    expect(readFileSync(dir.lock, 'utf8').split(' ')[0]).to.equal(String(process.pid))
    unlock()
  })

  // The id of the owner belongs to this process now, which is a Node.js process too.
  for (const [what, content] of [
    ['names a process whose id another one has now', `${process.pid} an-earlier-boot 7`],
    ['is empty, because its writer was killed', ''],
    ['is no lock', 'noise'],
    ['names the process 0', '0'],
  ] as const) {
    it(`when the lock ${what}, it takes the lock over`, () => {
      const dir = temporary()
      writeFileSync(dir.lock, content)
      lockDataDir(dir)()
      expect(existsSync(dir.lock)).to.equal(false)
    })
  }

  it('when the lock is a link to nothing, it names the lock instead of waiting for it', () => {
    const dir = temporary()
    symlinkSync(join(dir.path, 'missing'), dir.lock)
    const { name, message } = failureOf(() => lockDataDir(dir))
    expect([name, message.includes(dir.lock), message.includes('\n')]).to.deep.equal([
      'StackError',
      true,
      false,
    ])
  })

  it('when something else stands in the place of the folder or a file, it names the path and what would be valid, in one line', () => {
    const dir = temporary()
    const file = join(dir.path, 'file')
    writeFileSync(file, '')
    mkdirSync(dir.lock)
    mkdirSync(dir.keys)
    const refused = [
      () => lockDataDir(dataDirAt(file)),
      () => lockDataDir(dataDirAt(join(file, 'below'))),
      () => lockDataDir(dir),
      () => loadKeys(dir),
      () => writePrivate(dir.keys, {}),
    ]
    for (const attempt of refused) {
      const { name, message } = failureOf(attempt)
      expect([name, message.includes(dir.path), message.includes('\n')]).to.deep.equal([
        'StackError',
        true,
        false,
      ])
    }
  })

  for (const content of ['', '{"phrase": "a b', '{}', 'null', '[]', '{"phrase": "no words"}']) {
    it(`when the file of keys is ${JSON.stringify(content)}, it is refused in one line that names --fresh`, () => {
      const dir = temporary()
      writeFileSync(dir.keys, content)
      const { name, message } = failureOf(() => loadKeys(dir))
      expect([name, message.includes(dir.keys), message.includes('\n')]).to.deep.equal([
        'StackError',
        true,
        false,
      ])
      expect(message).to.include('--fresh')
    })
  }

  it('when a file is written, a crash leaves the one before: the new one replaces it as a whole', () => {
    const dir = temporary()
    writePrivate(dir.keys, { version: 1 })
    const before = openSync(dir.keys, 'r')
    writePrivate(dir.keys, { version: 2 })
    expect(readFileSync(before, 'utf8')).to.include('1')
    closeSync(before)
    expect(readFileSync(dir.keys, 'utf8')).to.include('2')
    expect(statSync(dir.keys).mode & 0o777).to.equal(0o600)
    expect(readdirSync(dir.path)).to.deep.equal(['keys.json'])
  })
})

describe('stack/keys', () => {
  it('when keys are loaded twice from one folder, they are equal, and every role has its own key', () => {
    const dir = temporary()
    const keys = loadKeys(dir)
    const again = loadKeys(dir)
    const addresses = [
      ...[keys.deployer, keys.faucet, keys.oracle, keys.relayer(1), keys.relayer(2)],
      ...[keys.account(1), keys.bot(1), keys.replay(1, 1), keys.replay(2, 1)],
    ].map(({ address }) => address)
    expect(new Set(addresses).size).to.equal(addresses.length)
    expect(again.account(1)).to.deep.equal(keys.account(1))
    expect(loadKeys(temporary()).deployer.address).to.not.equal(keys.deployer.address)
  })
})
