"""The map side of a job: records become packs before the shuffle."""
