/** The jobs that dominate the duration of a test run. */
export interface FinishedJob {
  readonly name: string
  readonly wallS: number
  /** Seconds of the job's processes without the shared Postgres; null if the job was killed before it reported. */
  readonly processorS: number | null
}

const MOST_JOBS = 10

const seconds = (value: number | null): string => (value === null ? '?' : value.toFixed(0)).padStart(6)

/** A table of the ten jobs with the longest duration, longest first. */
export function slowestJobs(jobs: readonly FinishedJob[]): readonly string[] {
  const slowest = jobs.toSorted((one, other) => other.wallS - one.wallS).slice(0, MOST_JOBS)
  return [
    'wall s  processor s  job',
    ...slowest.map(
      ({ name, wallS, processorS }) => `${seconds(wallS)}  ${seconds(processorS).padStart(11)}  ${name}`,
    ),
  ]
}
