//! The timeline as SVG.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::{CtaLife, Mark, Row, Span, Timeline};

/// Most CTAs that are drawn.
const MOST_CTAS: usize = 32;

const WIDTH: f64 = 1280.0;
const LEFT: f64 = 190.0;
const RIGHT: f64 = 24.0;
const LEGEND_TOP: f64 = 66.0;
const LEGEND_GAP: f64 = 14.0;
const LEGEND_LINE: f64 = 18.0;
const BOTTOM: f64 = 48.0;
const CTA_GAP: f64 = 10.0;
/// Above a GPU's first CTA, in addition.
const GPU_GAP: f64 = 12.0;
const ROW_GAP: f64 = 3.0;
/// Height of one of the tracks in which overlapping spans of a row are put.
const TRACK: f64 = 7.0;
/// Overlapping spans beyond these share the last track.
const MOST_TRACKS: usize = 4;
/// Narrowest mark that can be seen.
const NARROWEST: f64 = 1.0;
/// About how many ticks the axis has.
const TICKS: f64 = 10.0;

const INK: &str = "#1f2430";
const FAINT: &str = "#6b7280";
const GRID: &str = "#e5e7eb";
const BACKGROUND: &str = "#f6f7f9";

fn colour(mark: Mark) -> &'static str {
    match mark {
        Mark::BulkLoad => "#3b76c4",
        Mark::BulkStore => "#8fb8e8",
        Mark::AsyncCopy => "#c9a23b",
        Mark::Mma => "#d9603b",
        Mark::TensorCopy => "#f2b48f",
        Mark::Commit => INK,
        Mark::TensorLoad => "#2f9163",
        Mark::GlobalStore => "#93cf9f",
        Mark::Multimem => "#8b55b5",
        Mark::Poll => "#d9cbe6",
    }
}

fn legend(mark: Mark) -> &'static str {
    match mark {
        Mark::BulkLoad => "TMA load, issue to arrival",
        Mark::BulkStore => "TMA store, issue to write",
        Mark::AsyncCopy => "cp.async, issue to wait",
        Mark::Mma => "MMA, issue to completion",
        Mark::TensorCopy => "copy to tensor memory",
        Mark::Commit => "commit completes",
        Mark::TensorLoad => "tcgen05.ld",
        Mark::GlobalStore => "global store",
        Mark::Multimem => "multimem",
        Mark::Poll => "polls memory",
    }
}

fn row_name(row: Row) -> &'static str {
    match row {
        Row::Copies => "copies",
        Row::Mma => "MMA",
        Row::Epilogue => "epilogue",
        Row::Communication => "communication",
    }
}

/// How many tracks a row has room for.
fn tracks_of(row: Row) -> usize {
    match row {
        Row::Copies | Row::Mma => MOST_TRACKS,
        Row::Epilogue | Row::Communication => 2,
    }
}

/// Times to places on the page.
struct Scale {
    start: f64,
    per_step: f64,
}

impl Scale {
    fn x(&self, time: u64) -> f64 {
        LEFT + (time as f64 - self.start) * self.per_step
    }
}

/// Draws the timeline; `caption` says of what.
pub(super) fn svg(timeline: &Timeline, caption: &str) -> String {
    let mut out = String::new();
    draw(timeline, caption, &mut out).expect("a string takes everything");
    out
}

fn draw(timeline: &Timeline, caption: &str, out: &mut String) -> std::fmt::Result {
    let shown: Vec<_> = timeline.ctas.iter().take(MOST_CTAS).collect();
    let first = shown.iter().map(|(_, life)| life.first).min().unwrap_or(0);
    let last = shown.iter().map(|(_, life)| life.last).max().unwrap_or(1).max(first + 1);
    let scale = Scale { start: first as f64, per_step: (WIDTH - LEFT - RIGHT) / (last - first) as f64 };
    let marks: BTreeSet<Mark> = shown.iter().flat_map(|(_, life)| life.spans.iter().map(|span| span.mark)).collect();
    // A row that no CTA uses is left out.
    let rows: BTreeSet<Row> = marks.iter().map(|mark| mark.row()).collect();
    let row_height = |row: Row| tracks_of(row) as f64 * TRACK;
    let cta_height = rows.iter().map(|&row| row_height(row) + ROW_GAP).sum::<f64>().max(TRACK + ROW_GAP) + ROW_GAP;
    let hidden = timeline.ctas.len() - shown.len();
    let top = LEGEND_TOP + draw_legend(&marks, &mut String::new())? + LEGEND_GAP;
    let mut places = Vec::with_capacity(shown.len());
    let mut bottom = top;
    let mut gpu_above = shown.first().map(|(key, _)| key.0);
    for &(&(gpu, _), _) in &shown {
        if gpu_above != Some(gpu) {
            (gpu_above, bottom) = (Some(gpu), bottom + GPU_GAP);
        }
        places.push(bottom);
        bottom += cta_height + CTA_GAP;
    }
    let height = bottom + BOTTOM + if hidden > 0 { 18.0 } else { 0.0 };

    writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" \
         font-family=\"Helvetica, Arial, sans-serif\" font-size=\"12\" fill=\"{INK}\">"
    )?;
    writeln!(out, "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>")?;
    writeln!(out, "<text x=\"16\" y=\"28\" font-size=\"18\" font-weight=\"bold\">{}</text>", escaped(caption))?;
    writeln!(
        out,
        "<text x=\"16\" y=\"48\" fill=\"{FAINT}\">Simulated time: it shows order and overlap under one seed, and says \
         nothing about speed.</text>"
    )?;
    draw_legend(&marks, out)?;
    for (&(_, life), &y) in shown.iter().zip(&places) {
        let (start, end) = (scale.x(life.first), scale.x(life.last));
        writeln!(
            out,
            "<rect x=\"{start:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{cta_height:.1}\" rx=\"2\" \
             fill=\"{BACKGROUND}\" stroke=\"{GRID}\"/>",
            (end - start).max(NARROWEST)
        )?;
    }
    draw_axis(&scale, first, last, top, bottom, out)?;
    for (&(&(gpu, [z, cy, x]), life), &y) in shown.iter().zip(&places) {
        let name = match (z, cy) {
            (0, 0) => format!("GPU {gpu}, CTA {x}"),
            _ => format!("GPU {gpu}, CTA {x},{cy},{z}"),
        };
        writeln!(out, "<text x=\"16\" y=\"{:.1}\" font-weight=\"bold\">{name}</text>", y + cta_height / 2.0 + 4.0)?;
        let mut row_y = y + ROW_GAP;
        for &row in &rows {
            let height = row_height(row);
            writeln!(
                out,
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\" font-size=\"10\" fill=\"{FAINT}\">{}</text>",
                LEFT - 8.0,
                row_y + height / 2.0 + 3.5,
                row_name(row)
            )?;
            draw_row(life, row, row_y, &scale, out)?;
            row_y += height + ROW_GAP;
        }
    }
    if hidden > 0 {
        writeln!(
            out,
            "<text x=\"16\" y=\"{:.1}\" fill=\"{FAINT}\">{hidden} more CTAs are not drawn.</text>",
            height - 10.0
        )?;
    }
    writeln!(out, "</svg>")
}

/// Draws the legend and gives its height.
fn draw_legend(marks: &BTreeSet<Mark>, out: &mut String) -> Result<f64, std::fmt::Error> {
    let (mut x, mut y) = (16.0, LEGEND_TOP);
    for mark in Mark::ALL.into_iter().filter(|mark| marks.contains(mark)) {
        let text = legend(mark);
        // The text's width is not known here; this is ample.
        let advance = 36.0 + 6.8 * text.len() as f64;
        if x + advance > WIDTH - RIGHT {
            (x, y) = (16.0, y + LEGEND_LINE);
        }
        let width = if mark == Mark::Commit { 2.0 } else { 12.0 };
        writeln!(
            out,
            "<rect x=\"{:.1}\" y=\"{y}\" width=\"{width}\" height=\"10\" fill=\"{}\"/><text x=\"{:.1}\" y=\"{}\">{text}</text>",
            x + (12.0 - width) / 2.0,
            colour(mark),
            x + 17.0,
            y + 9.5
        )?;
        x += advance;
    }
    Ok(y + LEGEND_LINE - LEGEND_TOP)
}

fn draw_axis(scale: &Scale, first: u64, last: u64, top: f64, bottom: f64, out: &mut String) -> std::fmt::Result {
    let step = tick_step(last - first);
    let mut tick = first.next_multiple_of(step);
    while tick <= last {
        let x = scale.x(tick);
        writeln!(
            out,
            "<line x1=\"{x:.1}\" y1=\"{:.1}\" x2=\"{x:.1}\" y2=\"{bottom:.1}\" stroke=\"{GRID}\"/>\
             <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\" font-size=\"11\" fill=\"{FAINT}\">{tick}</text>",
            top - 6.0,
            bottom + 14.0
        )?;
        tick += step;
    }
    writeln!(
        out,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">simulated time, in steps of the scheduler</text>",
        (LEFT + WIDTH - RIGHT) / 2.0,
        bottom + 34.0
    )
}

/// 1, 2 or 5 times a power of ten.
fn tick_step(range: u64) -> u64 {
    let rough = (range as f64 / TICKS).max(1.0);
    let power = 10_f64.powf(rough.log10().floor());
    let factor = [1.0, 2.0, 5.0, 10.0].into_iter().find(|factor| factor * power >= rough).unwrap_or(10.0);
    ((factor * power) as u64).max(1)
}

/// A row's spans, the overlapping ones above each other; single instructions that would touch are drawn as one.
fn draw_row(life: &CtaLife, row: Row, y: f64, scale: &Scale, out: &mut String) -> std::fmt::Result {
    let tracks = tracks_of(row);
    let height = tracks as f64 * TRACK;
    let mut spans: Vec<Span> = life.spans.iter().copied().filter(|span| span.mark.row() == row).collect();
    spans.sort_by_key(|span| (span.start, span.end));
    // Commits mark a moment of the whole row: over the others.
    let (moments, spans): (Vec<Span>, Vec<Span>) = spans.into_iter().partition(|span| span.mark == Mark::Commit);
    let mut place = |mark: Mark, start: f64, end: f64, top: f64, height: f64| {
        let width = (end - start).max(NARROWEST);
        let colour = colour(mark);
        writeln!(
            out,
            "<rect x=\"{start:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"{colour}\"/>"
        )
    };
    if matches!(row, Row::Copies | Row::Mma) {
        let mut free_at = vec![0; tracks];
        for span in spans {
            let track = free_at.iter().position(|&free| free <= span.start).unwrap_or(tracks - 1);
            free_at[track] = free_at[track].max(span.end);
            let top = y + track as f64 * TRACK + 0.5;
            place(span.mark, scale.x(span.start), scale.x(span.end), top, TRACK - 1.0)?;
        }
    } else {
        // The two kinds of a row have a track each, and each is drawn without overlaps.
        for (track, mark) in Mark::ALL.into_iter().filter(|mark| mark.row() == row).enumerate() {
            let top = y + track as f64 * TRACK + 0.5;
            let mut open: Option<(f64, f64)> = None;
            for span in spans.iter().filter(|span| span.mark == mark) {
                let (start, end) = (scale.x(span.start), scale.x(span.end).max(scale.x(span.start) + NARROWEST));
                open = match open {
                    Some((from, to)) if start <= to + NARROWEST / 2.0 => Some((from, to.max(end))),
                    Some((from, to)) => {
                        place(mark, from, to, top, TRACK - 1.0)?;
                        Some((start, end))
                    }
                    None => Some((start, end)),
                };
            }
            if let Some((from, to)) = open {
                place(mark, from, to, top, TRACK - 1.0)?;
            }
        }
    }
    for moment in moments {
        let x = scale.x(moment.start);
        place(moment.mark, x, x + NARROWEST, y, height)?;
    }
    Ok(())
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_axis_has_round_steps() {
        for (range, step) in [(1, 1), (10, 1), (11, 2), (45, 5), (51, 10), (12_345, 2000)] {
            assert_eq!(tick_step(range), step, "range {range}");
        }
    }
}
