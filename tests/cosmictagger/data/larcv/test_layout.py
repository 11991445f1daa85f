import h5py
import pytest

from cosmictagger.data.larcv import layout

TABLES = {
    "Events/event_id": layout.EVENT_ID,
    "Data/sparse2d_sbndwire_group/extents": layout.EXTENTS,
    "Data/sparse2d_sbndwire_group/voxel_extents": layout.ID_EXTENTS,
    "Data/sparse2d_sbndwire_group/image_meta": layout.IMAGE_META,
    "Data/sparse2d_sbndwire_group/voxels": layout.VOXEL,
    "Data/sparse2d_sbnd_cosmicseg_group/voxels": layout.VOXEL,
    "Data/cluster2d_sbndneutrino_group/extents": layout.EXTENTS,
    "Data/cluster2d_sbndneutrino_group/projection_extents": layout.ID_EXTENTS,
    "Data/cluster2d_sbndneutrino_group/cluster_extents": layout.ID_EXTENTS,
    "Data/cluster2d_sbndneutrino_group/voxels": layout.VOXEL,
    "Data/particle_sbndneutrino_group/extents": layout.EXTENTS,
    "Data/particle_sbndneutrino_group/particles": layout.PARTICLE,
}


@pytest.mark.parametrize("name", TABLES)
def test_rows_have_the_types_of_a_real_file_to_the_byte(real_path, name):
    with h5py.File(real_path) as file:
        assert file[name].dtype == TABLES[name]


@pytest.mark.parametrize("name", TABLES)
def test_generated_files_have_the_same_tables(generated_path, name):
    with h5py.File(generated_path) as file:
        dataset = file[name]
        assert dataset.dtype == TABLES[name]
        assert dataset.maxshape == (None,)
        assert dataset.compression == "gzip"


def test_generated_files_have_every_table_of_a_real_file(real_path, generated_path):
    with h5py.File(real_path) as real, h5py.File(generated_path) as generated:
        assert tables(generated) == tables(real)


def tables(file):
    found = {}
    file.visititems(lambda name, item: found.update({name: item.dtype}) if isinstance(item, h5py.Dataset) else None)
    return found
