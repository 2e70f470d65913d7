/** Every command-line tool of package.json, as a process. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import { describe, it } from 'mocha'

const { scripts } = JSON.parse(readFileSync('package.json', 'utf8')) as { scripts: Record<string, string> }

/** Files that a script runs by `node`, with the names of those scripts. */
const TOOLS = Map.groupBy(
  Object.entries(scripts).flatMap(([name, command]) => {
    const file = /^node (\S+\.ts)$/.exec(command)?.[1]
    return file === undefined ? [] : [{ name, file }]
  }),
  ({ file }) => file,
)

/** Values of a flag, or positionals, that a tool rejects: [file, arguments, problem]. */
const MALFORMED = [
  ['bench/intake.ts', ['--seconds', 'ten'], '--seconds must be a positive number, not ten'],
  ['bench/batch.ts', ['--seconds', '-1'], '--seconds'],
  ['bench/mix.ts', ['--api', '0'], '--api must be a whole number from 1 to 8, not 0'],
  ['bench/ingest.ts', ['--markets', '0'], '--markets must be a whole number of at least 1, not 0'],
  ['bench/read-after.ts', ['--rate', '0'], '--rate must be a positive number, not 0'],
  ['bench/trigger.ts', ['--stops', '1.5'], '--stops must be a whole number of at least 1, not 1.5'],
  ['bench/scanner.ts', ['--positions', '10'], '--positions must be a whole number of at least 1000, not 10'],
  ['bench/liquidation.ts', ['--running', '0'], '--running must be a whole number of at least 1, not 0'],
  ['test/chaos/main.ts', ['--runs', '0'], '--runs must be a whole number of at least 1, not 0'],
  ['test/chaos/main.ts', ['--exchange', 'moon'], '--exchange must be one of machine, cluster, not moon'],
  ['test/chaos/drill.ts', ['--alert', 'Moon'], '--alert must be one of ProcessDown'],
  ['bench/feed.ts', ['--sockets', '0'], '--sockets must be a whole number of at least 1, not 0'],
  ['bench/latency.ts', ['--rate', 'fast'], '--rate must be a positive number, not fast'],
  ['test/run.ts', ['everything'], 'unknown suite everything: expected contracts, services, e2e'],
  ['test/model/deep.ts', ['one'], 'seed must be a whole number, not one'],
  ['test/model/deep.ts', ['--shrink', '1'], 'rounds must be a whole number, not undefined'],
  ['test/mutation/run.ts', ['--workers', '0'], '--workers must be a whole number of at least 1, not 0'],
] as const

describe('command-line tools', function () {
  this.timeout(120_000)

  async function run(file: string, args: readonly string[]) {
    const child = spawn(process.execPath, [file, ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
    const output = { stdout: '', stderr: '' }
    for (const name of ['stdout', 'stderr'] as const)
      child[name].on('data', (data) => {
        output[name] += data
      })
    const [code] = await once(child, 'close')
    return { code, ...output }
  }

  async function expectUsage(file: string, args: readonly string[], problem: string): Promise<void> {
    const { code, stdout, stderr } = await run(file, args)
    expect(stderr).to.include(problem)
    const usage = /^usage: npm (?:run (?:--silent )?)?([\w:-]+)/m.exec(stderr)?.[1] ?? 'no usage'
    expect(TOOLS.get(file)?.map(({ name }) => name)).to.include(usage)
    expect(stderr).to.not.match(/^\s+at /m)
    expect([code, stdout]).to.deep.equal([2, ''])
  }

  for (const file of TOOLS.keys()) {
    it(`when ${file} gets an unknown flag, it prints its usage and exits with 2`, () =>
      expectUsage(file, ['--nonsense'], "Unknown option '--nonsense'"))
  }

  for (const [file, args, problem] of MALFORMED) {
    it(`when ${file} gets ${args.join(' ')}, it prints its usage and exits with 2`, () =>
      expectUsage(file, args, problem))
  }

  it('when a tool gets --help, it prints its usage and exits with 0', async () => {
    const { code, stdout, stderr } = await run('bench/intake.ts', ['--help'])
    expect([code, stderr]).to.deep.equal([0, ''])
    expect(stdout).to.match(/^usage: npm run bench:intake -- \[options\]\n {2}--/)
  })
})
