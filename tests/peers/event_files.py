"""Holds the event files of a run beside its run.csv, as TensorBoard reads them.

    event_files.py METRICS_DIR
"""
import csv
import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator


def main():
    folder = sys.argv[1]
    theirs = EventAccumulator(folder, size_guidance={"scalars": 0})
    theirs.Reload()
    with open(folder + "/run.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    tags = ["loss", "learning_rate", "tokens_per_s", "results"]
    assert sorted(theirs.Tags()["scalars"]) == sorted(tags), theirs.Tags()
    compared = 0
    for tag in tags:
        ours = {int(row["step"]): row for row in rows if row[tag]}
        events = theirs.Scalars(tag)
        assert [event.step for event in events] == list(ours), f"other steps of {tag}"
        for event in events:
            row = ours[event.step]
            assert abs(event.value - float(row[tag])) <= 1e-5 * abs(event.value), (tag, row)
            assert abs(event.wall_time * 1000 - int(row["unix_ms"])) < 1, (tag, row)
            compared += 1
    print(f"{len(rows)} steps, {compared} numbers")


main()
