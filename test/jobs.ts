/** The jobs of `npm test`: each is one process that runs some of the test files. */
import { globSync } from 'node:fs'
import { dirname } from 'node:path'

/** A program of node_modules/.bin with its arguments. */
export interface Job {
  readonly name: string
  readonly words: readonly string[]
}

const mocha = (name: string, files: readonly string[]): Job => ({
  name,
  words: ['mocha', '--forbid-only', ...files],
})

/** Loading the modules of the product takes 2 to 3 s of processor time, longer than the tests of most small folders. */
const FEWEST_FILES = 4

/** The first folder below `test/`, such as `test/api` for `test/api/orders`. */
const areaOf = (folder: string): string => folder.split('/').slice(0, 2).join('/')

/** Service tests of one folder run in one process. Folders with few files share the process of their area. */
export function folderJobs(files: readonly string[]): Job[] {
  const folders = [...Map.groupBy(files.toSorted(), dirname)]
  const named = folders.map(([folder, own]) => ({
    name: own.length < FEWEST_FILES && folder !== areaOf(folder) ? `${areaOf(folder)}/…` : folder,
    own,
  }))
  return [...Map.groupBy(named, ({ name }) => name)].map(([name, parts]) =>
    mocha(
      name,
      parts.flatMap(({ own }) => own),
    ),
  )
}

const fileJobs = (files: readonly string[]): Job[] => files.toSorted().map((file) => mocha(file, [file]))

/** Without a build: the runner has built the contracts, and two builds at a time would write one cache. */
const hardhat = (name: string, files: readonly string[]): Job => ({
  name,
  words: ['hardhat', 'test', '--no-compile', ...files.toSorted()],
})

/** The deployment tests run the command line of Hardhat and compile sources, as long as all other contract tests take. */
function contractJobs(): Job[] {
  const deployment = 'test/contracts/deployment/*.test.ts'
  const others = globSync(['test/contracts/**/*.test.ts', 'test/contracts/**/*.t.sol'], {
    exclude: [deployment],
  })
  return [hardhat('test/contracts', others), hardhat('test/contracts/deployment', globSync(deployment))]
}

const E2E = 'test/e2e/**/*.test.ts'
const SERVICES = globSync('test/**/*.test.ts', { exclude: ['test/contracts/**', 'test/e2e/**'] })

export const SUITES: Readonly<Record<string, readonly Job[]>> = {
  contracts: contractJobs(),
  services: folderJobs(SERVICES),
  e2e: fileJobs(globSync(E2E)),
}

/** Jobs of more than a minute come first, so that all processes end at about the same time. */
const SLOW =
  /^test\/(contracts|keeper|indexer|stack|web|e2e\/(model|restart|crash|market-ends|adjustments|liquidation))/

/** They need no artifacts, and run beside the build, which computes on one core. */
const EARLY = /^test\/(domain|simulate|service|api\/(commands|http|live|order-entry|read-after))/

/** Whether the job can run before the artifacts of the contracts are built. */
export const isEarly = ({ name }: Job): boolean => EARLY.test(name)

/** Jobs that can begin at once, then long jobs, then all other jobs. */
const rank = (job: Job): number => (isEarly(job) ? 0 : SLOW.test(job.name) ? 1 : 2)

export const inOrder = (jobs: readonly Job[]): Job[] => jobs.toSorted((one, other) => rank(one) - rank(other))
