// Generated from the API's OpenAPI document; a test compares the two. To write it again:
//   python -m tests.architecture.api_types > services/api/dashboard/src/lib/api_types.ts

export interface Ablation {
  profile: string;
  vector: string;
  difference: number;
  interval: [number, number] | null;
}

export interface AnalysedScenario {
  scenario_id: string;
  dimension: string;
  title: string;
  persona: string;
  aim: string;
  student_messages: string[];
  turns: number;
  mean: number | null;
  interval: [number, number] | null;
  discrimination: number | null;
  models: number;
  runs: number;
  scored_responses: number;
  responses: number;
}

export interface AnswerNote {
  name: string;
  count: number;
  of: number;
  told: string;
  detail?: string;
}

export interface ApiCapabilities {
  starts: boolean;
  changes: boolean;
  streams: boolean;
  needs_key: boolean;
}

export interface BatchAnswer {
  scores: (ScoreAnswer | ConvertedAnswer | ItemProblem)[];
}

export interface Change {
  difference: number | null;
  interval: [number, number] | null;
  p_value: number;
  is_real: boolean;
}

export interface ChangedState {
  experiment_id: string;
  state: ExperimentState;
}

export interface ColumnFigures {
  column: string;
  n: number;
  auc: number | null;
  interval: [number, number] | null;
  spearman: number | null;
  cuts: [number, number] | null;
  kappa: number | null;
  within_tutor: number | null;
  as_coarse?: number | null;
  within_source: number | null;
  differences: Paired[];
}

export interface ConfigMistake {
  place: string;
  line: number | null;
  problem: string;
}

export interface ConstantBaseline {
  data: string;
  profile: string;
  constant: number;
  responses: number;
  beaten: number;
}

export interface ConvertedAnswer {
  scores: Record<string, number>;
  status?: "converted";
}

export interface CostAnalysis {
  models: ModelCost[];
  total_cost_usd: number | null;
  cost_known: number | null;
  spending: SpendingFigures;
  profile: string;
}

export interface CurvePoint {
  turn: number;
  at_risk: number;
  happened: number;
  left: number;
  interval: [number, number] | null;
}

export interface DataSet {
  name: string;
  responses: number;
  unscored: number;
  problems: string[];
}

export interface DateDifference {
  changed: string;
  points_before: number;
  points_after: number;
  difference: number | null;
  interval: [number, number] | null;
  p_value: number;
  is_real: boolean;
  finding: string;
}

export interface DeadLetterQueue {
  queue: string;
  waiting: number;
  letters: ShownDeadLetter[];
}

export interface DeadLetters {
  queues: DeadLetterQueue[] | null;
}

export interface Deleted {
  experiment_id: string;
  rows: number;
  rows_left: boolean;
}

export interface DescribedProfile {
  name: string;
  canonical: boolean;
  vectors: DescribedVector[];
  weights: Record<string, Record<string, number>>;
  overall_formula: string | null;
  legend: LegendEntry[];
}

export interface DescribedVector {
  name: string;
  meaning: string;
  formula: string;
  examples: WorkedExample[];
  ranges: NamedRange[];
}

export interface DetailedResults {
  experiment_id: string;
  profile: string;
  runs: RunSummary[];
  total: number;
  offset: number;
  next_offset: number | null;
}

export interface DetectableChange {
  since: string;
  until: string;
  points: number;
  least: number;
  finding: string;
}

export interface DimensionFigures {
  runs: number;
  overall: number | null;
  coverage: number | null;
  interval: [number, number] | null;
  [name: string]: number | null | [number, number];
}

export interface EquivalenceFigures {
  margin: number;
  interval: [number, number] | null;
  p_value: number;
  is_shown: boolean;
  scenarios_to_show: number | null;
}

export interface ExperimentDetail {
  experiment_id: string;
  manifest_id: string;
  conditions_id: string;
  profile: string;
  occasion: string | null;
  name: string | null;
  notes: string | null;
  pinned_at?: string | null;
  models: number;
  created_at: string;
  completed_at: string | null;
  planned: number;
  done: number;
  failed: number;
  left: number;
  deadline_at: string;
  priority: "normal" | "high";
  state: State;
  spending: SpendingFigures;
  dimensions: Record<string, number>;
  scenarios: number;
  repeats: number;
  stop_when: string | null;
  batches: string[];
  submitted: boolean;
  models_progress: ModelProgress[];
  troubles: Trouble[];
}

export interface ExperimentPage {
  experiments: ExperimentStatus[];
  total: number;
  offset: number;
  next_offset: number | null;
}

export type ExperimentState = "open" | "paused" | "resumed" | "cancelled" | "deleted";

export interface ExperimentStatus {
  experiment_id: string;
  manifest_id: string;
  conditions_id: string;
  profile: string;
  occasion: string | null;
  name: string | null;
  notes: string | null;
  pinned_at?: string | null;
  models: number;
  created_at: string;
  completed_at: string | null;
  planned: number;
  done: number;
  failed: number;
  left: number;
  deadline_at: string;
  priority: "normal" | "high";
  state: State;
  spending: SpendingFigures;
}

export interface ExperimentSummary {
  experiment_id: string;
  manifest_id: string;
  conditions_id: string;
  profile: string;
  occasion: string | null;
  name: string | null;
  notes: string | null;
  pinned_at?: string | null;
  models: number;
  created_at: string;
  completed_at: string | null;
  planned: number;
  done: number;
}

export interface FidelityFigures {
  model_id: string;
  model_name: string;
  kind: "reference" | "model";
  rank: number | null;
  rank_interval: [number, number] | null;
  turns_kept: number | null;
  turns_kept_interval: [number, number] | null;
  half_life: HalfLife | null;
  curve: CurvePoint[];
  started: ShareFigure | null;
  kept: number | null;
  kept_interval: [number, number] | null;
  recovery: ShareFigure | null;
  flips: number | null;
  key_said: ShareFigure | null;
  key_curve: CurvePoint[];
  kinds: KindFigures[];
  pass_power: PassPower[];
  scenarios: number;
  runs: number;
  planned_runs: number;
  lost: LostRuns | null;
  total_cost_usd: number | null;
  cost_known: number | null;
  turns: Record<string, [number, number, number][]>;
  experiment_ids: string[];
}

export interface FidelityTable {
  models: FidelityFigures[];
  horizon: number;
  profile: string;
  scenarios: PlannedScenario[];
  differences: PairFigures[];
  experiments: ExperimentSummary[];
  filtered?: Filtered | null;
  notes: string[];
  version?: string;
}

export interface FigurePair {
  name: string;
  first: number | null;
  second: number | null;
  difference: number | null;
  interval: [number, number] | null;
}

export interface Filtered {
  models: string[];
  dimension: string | null;
  since: string | null;
  until: string | null;
  told: string;
  known_models: string[];
  known_dimensions: string[];
}

export interface Gaming {
  reply: string;
  is_solved: boolean;
  overall: Record<string, number>;
}

export interface GivenTurn {
  student: string;
  tutor: string;
  output_tokens?: number | null;
  status?: Status | null;
}

export interface HalfLife {
  turn: number | null;
  interval: [number | null, number | null] | null;
}

export interface Health {
  status?: "ok";
}

export interface IntervalSteps {
  scenarios: ScenarioStep[];
  runs: number;
  mean: number | null;
  squares: number | null;
  variance: number | null;
  standard_error: number | null;
  effective_answers: number | null;
  parts: PartStep[];
  jump: number | null;
  variance_below: number | null;
  variance_above: number | null;
  degrees_of_freedom: number | null;
  quantile: number | null;
  interval: [number, number] | null;
  interval_note: string | null;
}

export interface ItemProblem {
  error: Problem;
}

export interface KindFigures {
  kind: string;
  lapsed: ShareFigure;
  more_lapsed: MoreFigure | null;
  broke: ShareFigure | null;
  more_broke: MoreFigure | null;
}

export interface LabelFigures {
  data: string;
  label: string;
  n: number;
  positives: number;
  groups: number;
  dimension: string;
  best_judge: string | null;
  columns: ColumnFigures[];
  ablation: Ablation[];
}

export interface LatestRankings {
  rankings: RankedModel[];
  winner: string | null;
  profile: string;
  profiles: string[];
  latest_at: string | null;
  note: string | null;
}

export interface LeftOut {
  reason: LeftOutReason;
  count: number;
  experiment_ids: string[];
}

export type LeftOutReason =
  | "not_pinned"
  | "other_profile"
  | "pilot"
  | "other_conditions"
  | "no_score"
  | "incomplete"
  | "older"
  | "too_many";

export interface LegendEntry {
  kind: string;
  name: string;
  meaning: string;
  mark: Mark;
}

export interface LostRuns {
  runs: number;
  share: number;
  turns_kept: [number, number];
}

export type Mark = "raises" | "lowers" | "neutral" | "passage";

export interface ModelComparison {
  models: ModelFigures[];
  winner: string | null;
  profile: string;
  profiles: string[];
  vectors: string[];
  dimensions: string[];
  experiments: ExperimentSummary[];
  left_out: LeftOut[];
  baseline: ModelFigures | null;
  prompts?: PromptEffect[];
  mixed_conditions: boolean;
  filtered?: Filtered | null;
  spending: SpendingFigures;
  note: string | null;
  notes: string[];
  version?: string;
}

export interface ModelCost {
  model_id: string;
  model_name: string;
  kind: "reference" | "model";
  total_cost_usd: number | null;
  cost_known: number | null;
  cost_per_run_usd: number | null;
  cost_per_scored_response_usd: number | null;
  total_runs: number;
  responses: number;
  scored_responses: number;
  total_input_tokens: number | null;
  total_visible_output_tokens: number | null;
  total_reasoning_tokens: number | null;
  experiment_ids: string[];
}

export interface ModelDifference {
  first: Side;
  second: Side;
  profile: string;
  profiles: string[];
  scenarios: number;
  scenarios_shared: number;
  scenarios_of_first: number;
  scenarios_of_second: number;
  figures: FigurePair[];
  p_value: number;
  is_real: boolean;
  scenarios_to_tell: number | null;
  repeats_to_tell: number | null;
  equivalence: EquivalenceFigures;
  variance: VarianceFigures | null;
  turns_kept?: TurnsKeptPair | null;
  by_scenario: ScenarioPair[];
  left_out: number;
  note: string | null;
  notes: string[];
  version?: string;
}

export interface ModelFigures {
  model_id: string;
  model_name: string;
  kind: "reference" | "model" | "baseline";
  rank: number | null;
  rank_interval: [number, number] | null;
  other_weights?: OtherWeights | null;
  simulated_latency_ms: number;
  total_runs: number;
  planned_runs: number;
  overall_score: number | null;
  confidence_interval: [number, number] | null;
  interval_note: string | null;
  coverage: number | null;
  scored_responses: number;
  statuses: Record<string, number>;
  vectors: Record<string, VectorFigure>;
  dimensions: Record<string, DimensionFigures>;
  turns?: TurnFigures[];
  mean_visible_output_tokens: number | null;
  mean_reasoning_tokens: number | null;
  mean_input_tokens: number | null;
  mean_latency_ms: number | null;
  total_input_tokens: number | null;
  total_visible_output_tokens: number | null;
  total_reasoning_tokens: number | null;
  mean_cost_usd: number | null;
  total_cost_usd: number | null;
  cost_known: number | null;
  scenarios_alike?: number;
  notes?: AnswerNote[];
  asked?: [string, string] | null;
  experiment_ids: string[];
  conditions_id: string | null;
}

export interface ModelProgress {
  model_id: string;
  model_name: string;
  kind: "reference" | "model";
  planned: number;
  done: number;
  failed: number;
  failures: Record<string, number>;
  failure_examples: Record<string, string>;
  total_cost_usd: number | null;
  cost_known: number | null;
}

export interface ModelScores {
  model_id: string;
  model_name: string;
  kind: "reference" | "model";
  scores: ScenarioScore[];
}

export interface ModelSeries {
  model_id: string;
  model_name: string;
  kind: "reference" | "model";
  points: Point[];
  trends: SeriesTrend[];
  change_points: SeriesChangePoint[];
  detectable_changes: DetectableChange[];
  date_difference?: DateDifference | null;
  version_changes?: VersionChange[];
}

export interface MoreFigure {
  difference: number;
  interval: [number, number] | null;
  p_value: number;
  is_real: boolean;
}

export interface NamedRange {
  least: number;
  word: string;
}

export type NewState = "paused" | "resumed" | "cancelled";

export type OldRecord = Record<string, unknown>;

export type OpenApiDocument = Record<string, unknown>;

export interface OtherWeights {
  next_model: string | null;
  share_ahead: number | null;
  certain: boolean;
  rank_range: [number, number];
}

export interface PairFigures {
  first: string;
  second: string;
  scenarios: number;
  difference: number | null;
  interval: [number, number] | null;
  p_value: number;
  is_real: boolean;
  is_equivalent: boolean;
  scenarios_to_tell: number | null;
}

export interface Paired {
  other: string;
  difference: number;
  interval: [number, number] | null;
  is_judged?: boolean;
}

export interface PartStep {
  name: string;
  weight: number;
  mean: number;
  variance: number;
  jump: number;
  variance_below: number;
  variance_above: number;
}

export interface PassPower {
  runs: number;
  share: number;
  interval: [number, number] | null;
  scenarios: number;
}

export interface PendingRun {
  run_id: string;
  model_id: string;
  scenario_id: string;
  dimension: string;
  repeat: number;
  waits_for: WaitsFor;
  turns_answered: number;
  turns: number;
}

export interface PendingRuns {
  experiment_id: string;
  runs: PendingRun[];
  has_more: boolean;
}

export interface PlannedScenario {
  scenario_id: string;
  title: string;
  dimension: string;
  turns: number;
  pressures: string[];
  has_key: boolean;
}

export interface Point {
  experiment_id: string;
  title: string | null;
  created_at: string;
  profile: string;
  conditions_id: string;
  joins: boolean;
  overall_score: number | null;
  value: number | null;
  confidence_interval: [number, number] | null;
  coverage: number | null;
  total_runs: number;
  lost?: LostRuns | null;
  benchmark_changed?: ("profile" | "scenarios" | "prompt or parameters")[];
  change: Change | null;
  reused?: number;
  answers?: number;
  model_versions?: string[];
}

export interface Problem {
  type?: string;
  title: string;
  status: number;
  detail: string;
  mistakes?: ConfigMistake[];
}

export interface ProfileList {
  profiles: DescribedProfile[];
}

export interface PromptEffect {
  prompt: string;
  overall: number | null;
  difference: number | null;
  interval: [number, number] | null;
  p_value: number | null;
  is_real: boolean;
  models: number;
  scenarios: number;
}

export interface RankedModel {
  rank: number | null;
  rank_interval: [number, number] | null;
  model_id: string;
  model_name: string;
  kind: "reference" | "model" | "baseline";
  overall_score: number | null;
  confidence_interval: [number, number] | null;
  coverage: number | null;
  total_runs: number;
}

export interface Redrive {
  queue?:
    | "runner-run-requested"
    | "judge-response-recorded"
    | "curator-response-scored"
    | "curator-run-failed"
    | null;
  limit?: number | null;
}

export interface Redriven {
  put_back: Record<string, number>;
}

export interface RescoreAnswer {
  experiment_id: string;
  profile: string;
  runs: number;
  responses: number;
  failures: number;
  already_scored: number;
  next_offset: number | null;
}

export interface RescoreRequest {
  profile: string;
  offset?: number;
}

export interface RunContext {
  experiment_title: string | null;
  model_name: string;
  kind: "reference" | "model";
  simulated_latency_ms: number;
  profile: string;
  student: string | null;
  system_prompt: string;
  scenario: ScenarioText;
  repeats: number;
  previous: RunLink | null;
  next: RunLink | null;
  previous_model: RunLink | null;
  next_model: RunLink | null;
}

export interface RunDetails {
  run_id: string;
  experiment_id: string;
  model_id: string;
  scenario_id: string;
  dimension: string;
  repeat: number;
  turns: number;
  scored_turns: number;
  statuses: Status[];
  turn_scores: (number | null)[];
  scores: Record<string, number | null>;
  total_input_tokens: number | null;
  total_visible_output_tokens: number | null;
  total_cost_usd: number | null;
  total_latency_ms: number | null;
  attempts: number;
  failure: RunFailed | null;
  profile: string | null;
  profiles: string[];
  context: RunContext | null;
}

export interface RunFailed {
  turn: number;
  kind: string;
  message: string;
  attempts: number;
}

export interface RunLink {
  run_id: string;
  model_id: string;
  model_name: string;
  scenario_id: string;
  repeat: number;
}

export interface RunSummary {
  run_id: string;
  experiment_id: string;
  model_id: string;
  scenario_id: string;
  dimension: string;
  repeat: number;
  turns: number;
  scored_turns: number;
  statuses: Status[];
  turn_scores: (number | null)[];
  scores: Record<string, number | null>;
  total_input_tokens: number | null;
  total_visible_output_tokens: number | null;
  total_cost_usd: number | null;
  total_latency_ms: number | null;
  attempts: number;
  failure: RunFailed | null;
}

export interface RunTurn {
  turn: number;
  student_message: string;
  text: string;
  score: ScoreAnswer;
  error_kind: string | null;
  input_tokens: number | null;
  visible_output_tokens: number | null;
  reasoning_tokens: number | null;
  latency_ms: number | null;
  first_token_ms: number | null;
  cost_usd: number | null;
  stop_reason: string | null;
  model_version: string | null;
  routed_to: string | null;
  reply_id: string | null;
  reasoning: string | null;
  notes: string[];
  attempts: number;
  recorded_at: string;
}

export interface RunTurns {
  run_id: string;
  profile: string | null;
  turns: RunTurn[];
  total: number;
  offset: number;
  next_offset: number | null;
}

export interface ScenarioAnalysis {
  experiment_id: string;
  name: string | null;
  occasion: string | null;
  profile: string;
  profiles: string[];
  tutors: "models" | "all";
  scenarios: AnalysedScenario[];
}

export interface ScenarioPair {
  scenario_id: string;
  dimension: string;
  first: number;
  second: number;
  difference: number;
}

export interface ScenarioScore {
  overall: number | null;
  vectors: Record<string, number | null>;
  runs: number;
  scored_responses: number;
  responses: number;
}

export interface ScenarioScores {
  experiment_id: string;
  profile: string;
  profiles: string[];
  vectors: string[];
  scenarios: ScoredScenario[];
  models: ModelScores[];
  version?: string;
}

export interface ScenarioStep {
  scenario: string;
  runs: number;
  mean: number;
  residual: number;
}

export interface ScenarioText {
  title: string;
  persona: string;
  aim: string;
  turns: number;
}

export interface ScoreAnswer {
  overall: number | null;
  status: Status;
  visible_text?: string | null;
  evidence: ShownEvidence;
  [name: string]: number | null | string | ShownEvidence;
}

export interface ScoreBatch {
  items: Record<string, unknown>[];
}

export type ScoreOrBatch = ScoreRequest | ScoreBatch | OldRecord;

export type ScoreOrBatchAnswer = ScoreAnswer | ConvertedAnswer | BatchAnswer;

export interface ScoreRequest {
  text: string;
  output_tokens?: number | null;
  status?: Status;
  dimension?: string | null;
  student_message?: string;
  earlier_turns?: GivenTurn[];
  answer_key?: string[];
  profile?: string;
}

export interface ScoredScenario {
  scenario_id: string;
  dimension: string;
  title: string;
}

export interface SeriesChangePoint {
  since: string;
  until: string;
  experiment_id: string;
  last_before: string;
  first_after: string;
  earliest: string;
  latest: string;
  points_before: number;
  points_after: number;
  difference: number;
  p_value: number;
  is_real: boolean;
  finding: string;
}

export interface SeriesTrend {
  since: string;
  until: string;
  points: number;
  slope_per_week: number;
  p_value: number;
  is_real: boolean;
  finding: string;
}

export interface ShareFigure {
  share: number;
  interval: [number, number] | null;
  scenarios: number;
}

export interface ShownDeadLetter {
  id: string;
  type: string;
  group: string;
  attempts: number;
  reason: string;
}

export interface ShownEvidence {
  spans: ShownSpan[];
  facts: Record<string, ShownFact>;
  notes: string[];
}

export interface ShownFact {
  values: Record<string, number | string>;
  sentence: string;
  word: string | null;
}

export interface ShownSpan {
  start: number;
  end: number;
  kind: string;
  label: string;
}

export interface Side {
  model_id: string;
  model_name: string;
  experiment_id: string;
  title: string | null;
  created_at: string;
  conditions_id: string;
  answers: number;
  reused: number;
  scored: number;
}

export interface SpendingFigures {
  budget_usd: number | null;
  paid_usd: number | null;
  possibly_paid_usd: number | null;
  in_flight_usd: number | null;
  reused_usd: number;
  exhausted: boolean;
  told: string;
}

export type State = "complete" | "running" | "overdue" | "paused" | "cancelled" | "out_of_budget";

export interface StateChange {
  state: NewState;
}

export type Status = "ok" | "truncated" | "refused" | "empty" | "error";

export interface Submission {
  experiment_id: string;
  manifest_id: string;
  planned: number;
  already_done: number | null;
  answered: number | null;
  requested: number | null;
  reused: number | null;
  likely_cost_usd: number | null;
  most_cost_usd: number | null;
  notes: string[];
}

export type SubmittedConfig = Record<string, unknown>;

export interface Timeseries {
  figure: string;
  turn: number | null;
  dimension: string | null;
  greatest: number;
  models: ModelSeries[];
  experiments: number;
  left_out: number;
  known_figures: string[];
  known_turns: number;
  known_dimensions: string[];
  notes: string[];
  version?: string;
}

export interface Trouble {
  experiment_id: string;
  model_id: string;
  kind: string;
  reason: string;
  attempt: number;
  attempts: number;
  next_in_seconds: number | null;
}

export interface TurnFigures {
  turn: number;
  scored_responses: number;
  overall: number | null;
  interval: [number, number] | null;
  coverage: number | null;
  vectors: Record<string, number | null>;
}

export interface TurnsKeptPair {
  horizon: number;
  scenarios: number;
  first: number;
  second: number;
  difference: number;
  interval: [number, number] | null;
  p_value: number;
  is_real: boolean;
  is_equivalent: boolean;
}

export interface ValidityReport {
  version: string | null;
  profiles: string[];
  resamples: number;
  seed: number;
  data: DataSet[];
  labels: LabelFigures[];
  constant: ConstantBaseline[];
  gaming: Gaming[];
}

export interface VarianceFigures {
  scenario: number;
  rest: number;
  repeat: number | null;
  repeats: number;
  buy: "scenarios" | "repeats" | null;
}

export interface VectorFigure {
  mean: number | null;
  interval: [number, number] | null;
  n: number;
  not_applicable?: number;
  note?: string | null;
}

export interface VersionChange {
  experiment_id: string;
  before: string[];
  after: string[];
  points_before: number;
  points_after: number;
  difference: number | null;
  interval: [number, number] | null;
  p_value: number;
  is_real: boolean;
  finding: string;
}

export type WaitsFor = "response" | "score";

export interface WeeklyComparison {
  week: string;
  weeks: string[];
  comparison: ModelComparison;
}

export interface WorkedExample {
  text: string;
  output_tokens: number | null;
  score: number | null;
  arithmetic: string | null;
  word: string | null;
}

export interface GetAnswers {
  "/api/capabilities": ApiCapabilities;
  "/api/compare": ModelDifference;
  "/api/cost-analysis": CostAnalysis;
  "/api/dead-letters": DeadLetters;
  "/api/detailed-results": DetailedResults;
  "/api/experiments": ExperimentPage;
  "/api/experiments/{experiment_id}": ExperimentDetail;
  "/api/experiments/{experiment_id}/pending": PendingRuns;
  "/api/fidelity": FidelityTable;
  "/api/interval": IntervalSteps;
  "/api/latest-rankings": LatestRankings;
  "/api/model-comparison": ModelComparison;
  "/api/profiles": ProfileList;
  "/api/scenario-scores": ScenarioScores;
  "/api/scenarios": ScenarioAnalysis;
  "/api/timeseries": Timeseries;
  "/api/validity": ValidityReport;
  "/healthz": Health;
  "/openapi.json": OpenApiDocument;
  "/readyz": Health;
  "/runs/{run_id}/summary": RunDetails;
  "/runs/{run_id}/turns": RunTurns;
  "/weekly": WeeklyComparison;
}

export interface PostAnswers {
  "/api/dead-letters/redrive": Redriven;
  "/api/experiments": Submission;
  "/api/experiments/{experiment_id}/rescore": RescoreAnswer;
  "/api/score": ScoreOrBatchAnswer;
}

export interface PatchAnswers {
  "/api/experiments/{experiment_id}": ChangedState;
}

export interface DeleteAnswers {
  "/api/experiments/{experiment_id}": Deleted;
}
